use proptest::prelude::*;

use super::*;

fn in_upper_case(html: &str) -> String {
    translate_html(html, &mut |text| text.to_uppercase())
}

#[test]
fn only_words_change() {
    for (html, expected) in [
        (
            "<p>Hold for 15&nbsp;seconds &ndash; <em>then</em>\n wait.</p>",
            "<p>HOLD FOR 15&nbsp;SECONDS &ndash; <em>THEN</em>\n WAIT.</p>",
        ),
        ("&nbsp;wi&#8209;fi&nbsp;<br>", "&nbsp;WI&#8209;FI&nbsp;<br>"),
        ("a & b < c > d", "A & B < C > D"),
        ("a &amp; b &lt;c&gt;", "A &amp; B &lt;C&gt;"),
        ("12&nbsp;&ndash;&nbsp;15", "12&nbsp;&ndash;&nbsp;15"),
        ("", ""),
        // Tags and comments.
        ("a<b>c", "A<b>C"),
        ("<!-- <p> -->x", "<!-- <p> -->X"),
        ("<!-->x", "<!-->X"),
        ("<a t='>'>x", "<a t='>'>X"),
        ("<a t=b\">x", "<a t=b\">X"),
        ("<a =\"b>x", "<a =\"b>X"),
        ("<a t = \"/>\" />x", "<a t = \"/>\" />X"),
        ("x</>y", "X</>Y"),
        ("a<b", "A<b"),
        ("x &nosuch; y", "X &nosuch; Y"),
        // Elements whose content is not prose.
        (
            "<script>if (a</b) '</p>'</script>x",
            "<script>if (a</b) '</p>'</script>X",
        ),
        ("<STYLE>p > a {}</Style >x", "<STYLE>p > a {}</Style >X"),
        (
            "<code>ipconfig <b>/all</b></code>x",
            "<code>ipconfig <b>/all</b></code>X",
        ),
        (
            "<pre class=\"x\">a<pre>b</pre>c</pre>x",
            "<pre class=\"x\">a<pre>b</pre>c</pre>X",
        ),
        ("<pre>without an end <p>", "<pre>without an end <p>"),
        ("<codex>a</codex>", "<codex>A</codex>"),
    ] {
        assert_eq!(in_upper_case(html), expected);
    }
}

#[test]
fn character_references_are_read() {
    for (text, expected) in [
        ("&nbsp;x", Some('\u{a0}')),
        ("&uuml;", Some('ü')),
        ("&amp;", Some('&')),
        ("&zwj;", Some('\u{200d}')),
        ("&#8209;", Some('\u{2011}')),
        ("&#x2011;", Some('\u{2011}')),
        ("&#150;", Some('–')),
        // References that do not stand for a single character.
        ("&nosuchname;", None),
        ("&NotEqualTilde;", None),
        ("&#129;", None),
        ("&#xD800;", None),
        ("&#99999999999;", None),
    ] {
        let len = text.find(';').map_or(0, |at| at + 1);
        assert_eq!(reference(text), Some((len, expected)), "{text}");
    }
    for text in ["&", "& b;", "&;", "&#;", "&#x;", "AT&T;", "&nbsp", "&ä;"] {
        assert_eq!(reference(text), None, "{text}");
    }
}

#[test]
fn an_engine_cannot_bring_in_markup() {
    for (source, answer, expected) in [
        ("a", "<script>x</script>", "&lt;script&gt;x&lt;/script&gt;"),
        ("a < b", "<b> < c <", "&lt;b&gt; < c &lt;"),
        ("AT & T", "&lt;b&gt; & c", "&amp;lt;b&amp;gt; & c"),
        ("a", "&nbsp;", "&amp;nbsp;"),
    ] {
        let translated = translate_html(source, &mut |_| answer.to_owned());
        assert_eq!(translated, expected);
    }
}

/// Texts with many characters that are special to the splitter.
fn html() -> impl Strategy<Value = String> {
    let tokens = "< > / ! -- & ; # \" ' = a é b> </b> <b> <!-- --> <code> </code> \
                  <pre> </pre> <script> </script> <style </style> &nbsp; &amp; &lt; &check; \
                  &nosuch; &#8209; 。";
    let mut tokens: Vec<&str> = tokens.split(' ').collect();
    tokens.extend([" ", "\n", "<p title='"]);
    let token = prop::sample::select(tokens);
    prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.concat())
}

#[allow(clippy::expect_used)]
fn markup(html: &str) -> String {
    let mut at = 0;
    let mut markup = String::new();
    for text in texts(html) {
        markup += html.get(at..text.start).expect("texts in order");
        at = text.end;
    }
    markup + html.get(at..).expect("texts in order")
}

proptest! {
    #[test]
    fn whatever_an_engine_answers_the_markup_stays(html in prop_oneof![html(), "\\PC*"], answers in prop::collection::vec(html(), 1..5)) {
        let mut answers = answers.iter().cycle();
        let translated = translate_html(&html, &mut |_| answers.next().cloned().unwrap_or_default());
        prop_assert_eq!(markup(&translated), markup(&html));
    }

    #[test]
    fn no_markup_comes_from_a_text_without_any(answer in html()) {
        let translated = translate_html("plain", &mut |_| answer.clone());
        prop_assert_eq!(markup(&translated), "");
    }

    #[test]
    fn well_formed_texts_survive_an_unchanging_translation(
        html in "(<p>|</p>|<br/>|&nbsp;|&ndash;|&amp;|&lt;|[a-z ]|é|→){0,60}"
    ) {
        prop_assert_eq!(translate_html(&html, &mut str::to_owned), html);
    }
}
