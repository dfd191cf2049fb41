use proptest::prelude::*;

use super::{
    Piece::{Markup, Text},
    *,
};

fn pieces(html: &str) -> Vec<Piece<'_>> {
    split(html).collect()
}

fn in_upper_case(html: &str) -> String {
    translate_html(html, &mut |text| text.to_uppercase())
}

#[test]
fn tags_and_comments_are_markup() {
    for (html, expected) in [
        ("a<b>c", vec![Text("a"), Markup("<b>"), Text("c")]),
        ("<!-- <p> -->x", vec![Markup("<!-- <p> -->"), Text("x")]),
        ("<!-->x", vec![Markup("<!-->"), Text("x")]),
        ("<a t='>'>x", vec![Markup("<a t='>'>"), Text("x")]),
        ("<a t=b\">x", vec![Markup("<a t=b\">"), Text("x")]),
        ("<a =\"b>x", vec![Markup("<a =\"b>"), Text("x")]),
        (
            "<a t = \"/>\" />x",
            vec![Markup("<a t = \"/>\" />"), Text("x")],
        ),
        ("x</>y", vec![Text("x"), Markup("</>"), Text("y")]),
        ("a < b", vec![Text("a < b")]),
        ("a<b", vec![Text("a"), Markup("<b")]),
        (
            "x &nosuch; y",
            vec![Text("x "), Markup("&nosuch;"), Text(" y")],
        ),
    ] {
        assert_eq!(pieces(html), expected, "{html}");
    }
}

#[test]
fn content_that_is_no_prose_is_markup() {
    for html in [
        "<script>if (a</b) '</p>'</script>",
        "<STYLE>p > a {}</Style >",
        "<code>ipconfig <b>/all</b></code>",
        "<pre class=\"x\">a<pre>b</pre>c</pre>",
        "<pre>without an end <p>",
    ] {
        assert_eq!(pieces(html), [Markup(html)]);
    }
    assert_eq!(
        pieces("<codex>a</codex>"),
        [Markup("<codex>"), Text("a"), Markup("</codex>")]
    );
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
    ] {
        assert_eq!(in_upper_case(html), expected);
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

/// Texts dense in what means something to the splitter.
fn html() -> impl Strategy<Value = String> {
    let tokens = [
        "<",
        ">",
        "/",
        "!",
        "--",
        "&",
        ";",
        "#",
        "\"",
        "'",
        "=",
        " ",
        "\n",
        "a",
        "é",
        "b>",
        "</b>",
        "<b>",
        "<p title='",
        "<!--",
        "-->",
        "<code>",
        "</code>",
        "<pre>",
        "</pre>",
        "<script>",
        "</script>",
        "<style",
        "</style>",
        "&nbsp;",
        "&amp;",
        "&lt;",
        "&check;",
        "&nosuch;",
        "&#8209;",
        "。",
    ];
    let token = prop::sample::select(tokens.to_vec());
    prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.concat())
}

fn markup(html: &str) -> Vec<&str> {
    let markup = split(html).filter_map(|piece| match piece {
        Markup(markup) => Some(markup),
        Text(_) => None,
    });
    markup.collect()
}

proptest! {
    #[test]
    fn pieces_joined_are_the_text(html in prop_oneof![html(), "\\PC*"]) {
        let joined: String = split(&html)
            .map(|piece| match piece { Markup(text) | Text(text) => text })
            .collect();
        prop_assert_eq!(joined, html);
    }

    #[test]
    fn whatever_an_engine_answers_the_markup_stays(html in html(), answers in prop::collection::vec(html(), 1..5)) {
        let mut answers = answers.iter().cycle();
        let translated = translate_html(&html, &mut |_| answers.next().cloned().unwrap_or_default());
        prop_assert_eq!(markup(&translated), markup(&html));
    }

    #[test]
    fn no_markup_comes_from_a_text_without_any(answer in html()) {
        let translated = translate_html("plain", &mut |_| answer.clone());
        prop_assert!(markup(&translated).is_empty());
    }

    #[test]
    fn well_formed_texts_survive_an_unchanging_translation(
        html in "(<p>|</p>|<br/>|&nbsp;|&ndash;|&amp;|&lt;|[a-z ]|é|→){0,60}"
    ) {
        prop_assert_eq!(translate_html(&html, &mut str::to_owned), html);
    }
}
