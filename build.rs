//! Compiles the proto files with protox, so that protoc need not be installed, and generates
//! messages, servers and clients. Records the commit of the build.

use std::{
    env,
    error::Error,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use prost_types::{FileDescriptorSet, MethodDescriptorProto, ServiceDescriptorProto};

const FILES: [&str; 10] = [
    "expertise/v1/analysis.proto",
    "expertise/v1/change_service.proto",
    "expertise/v1/error_reason.proto",
    "expertise/v1/index_service.proto",
    "expertise/v1/resources.proto",
    "expertise/v1/revision_service.proto",
    "expertise/v1/role_service.proto",
    "expertise/v1/step_service.proto",
    "expertise/v1/task_service.proto",
    "expertise/v1/translation_service.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let out = env::var("OUT_DIR")?;
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).include_source_info(true);
    let set = compiler.open_files(FILES)?.file_descriptor_set();
    fs::write(Path::new(&out).join("services.rs"), services(&set)?)?;
    fs::write(Path::new(&out).join("calls.rs"), calls(&set)?)?;

    tonic_prost_build::configure()
        // Maps are in key order, because equal requests must have equal bytes for the digest of a
        // `request_id`.
        .btree_map(".")
        // Most answers manage no task, and the struct of a task is large. `is_boxed` in
        // `src/messages/decoded_size.rs` names the same field.
        .boxed(".expertise.v1.FeedbackValue.task_json")
        // This codec makes undecodable requests INVALID_ARGUMENT.
        .codec_path("crate::grpc::codec::Codec")
        .compile_fds(set)?;

    // The service reads Google's annotations, which decoding the set would drop. Reflection serves
    // the descriptors without comments.
    let mut without_comments = protox::Compiler::new(["proto"])?;
    without_comments.include_imports(true).open_files(FILES)?;
    let descriptors = without_comments.encode_file_descriptor_set();
    fs::write(Path::new(&out).join("descriptors.bin"), descriptors)?;
    // docs/reference.md also needs the comments.
    let documented = compiler.encode_file_descriptor_set();
    fs::write(Path::new(&out).join("documented.bin"), documented)?;

    println!("cargo:rerun-if-env-changed=EXPERTISE_COMMIT");
    let named = env::var("EXPERTISE_COMMIT").ok();
    let commit = named
        .filter(|commit| !commit.trim().is_empty())
        .or_else(commit);
    let commit = commit.unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=BUILD_COMMIT={}", commit.trim());
    let profile = env::var("PROFILE")?;
    set_flags_of_ignored_tests(&profile);
    // The tests start this binary thousands of times. Relocating it would take a fifth of each start,
    // so it is not position-independent.
    let system = (
        env::var("CARGO_CFG_TARGET_OS")?,
        env::var("CARGO_CFG_TARGET_ENV")?,
    );
    if profile == "debug" && system == ("linux".to_owned(), "gnu".to_owned()) {
        println!("cargo:rustc-link-arg-bin=expertise=-no-pie");
    }
    Ok(())
}

/// The package of the API.
const PACKAGE: &str = "expertise.v1";

/// Generates `SERVICES`, `serve` and the implementations of tonic's service traits. The rpc `GetTask`
/// calls `Call::get_task`, which takes a `GetTaskRequest` and returns a `GetTaskResponse`.
fn services(set: &FileDescriptorSet) -> Result<String, std::fmt::Error> {
    let files = set.file.iter().filter(|file| file.package() == PACKAGE);
    let services: Vec<&ServiceDescriptorProto> = files.flat_map(|file| &file.service).collect();
    let mut code = format!("pub const SERVICES: [&str; {}] = [", services.len());
    for service in &services {
        write!(code, "{:?}, ", format!("{PACKAGE}.{}", service.name()))?;
    }
    code.push_str(
        "];
        fn serve(services: &Services, max_message_bytes: usize) -> Routes {
            Routes::default()",
    );
    for service in &services {
        let name = service.name();
        let module = format!("{}_server", snake_case(name));
        write!(
            code,
            "
            .add_service(
                v1::{module}::{name}Server::new(services.clone())
                    .max_decoding_message_size(max_message_bytes)
                    .max_encoding_message_size(max_message_bytes),
            )"
        )?;
    }
    code.push('}');
    for service in services {
        let name = service.name();
        let module = format!("{}_server", snake_case(name));
        writeln!(
            code,
            "
        #[tonic::async_trait]
        impl v1::{module}::{name} for Services {{"
        )?;
        for rpc in service.method.iter().map(MethodDescriptorProto::name) {
            let function = snake_case(rpc);
            writeln!(
                code,
                "
            async fn {function}(
                &self,
                request: Request<v1::{rpc}Request>,
            ) -> Result<Response<v1::{rpc}Response>, Status> {{
                let (call, request) = self.call({rpc:?}, request)?;
                Ok(Response::new(call.{function}(request).await?))
            }}"
            )?;
        }
        code.push('}');
    }
    Ok(code)
}

/// Generates the calls of the client: for each request its method and response, and for each list
/// its page tokens.
fn calls(set: &FileDescriptorSet) -> Result<String, std::fmt::Error> {
    let mut code = String::new();
    for file in set.file.iter().filter(|file| file.package() == PACKAGE) {
        for service in &file.service {
            for rpc in service.method.iter().map(MethodDescriptorProto::name) {
                let path = format!("/{PACKAGE}.{}/{rpc}", service.name());
                writeln!(
                    code,
                    "impl RpcRequest for v1::{rpc}Request {{
                        type Response = v1::{rpc}Response;
                        const PATH: &'static str = {path:?};
                    }}"
                )?;
            }
        }
        let messages = file.message_type.iter();
        for request in messages.filter(|it| it.field.iter().any(|it| it.name() == "page_token")) {
            writeln!(
                code,
                "impl PageRequest for v1::{} {{
                    fn set_page_token(&mut self, token: String) {{
                        self.page_token = token;
                    }}

                    fn next_page_token(page: &Self::Response) -> &str {{
                        &page.next_page_token
                    }}
                }}",
                request.name()
            )?;
        }
    }
    Ok(code)
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

/// The variable with the URL of a PostgreSQL for the tests. If it is set, PostgreSQL need not be
/// installed here.
const TEST_POSTGRES_URL: &str = "EXPERTISE_TEST_POSTGRES_URL";

/// The flag that is set if something is missing, and the check for it.
type Need = (&'static str, fn() -> bool);

/// What tests need.
const NEEDS_OF_TESTS: [Need; 5] = [
    ("no_postgres", || {
        is_installed("initdb") || env::var_os(TEST_POSTGRES_URL).is_some()
    }),
    ("no_postgres_programs", || is_installed("initdb")),
    ("no_apertium", || is_installed("apertium-apy")),
    ("no_mount", || {
        let mount = ["mount", "-t", "tmpfs", "tmpfs", "/mnt"];
        ["-m", "-rm"]
            .iter()
            .any(|option| succeeds(Command::new("unshare").arg(option).args(mount)))
    }),
    ("no_prlimit", || {
        succeeds(Command::new("prlimit").arg("--fsize"))
    }),
];

/// In debug builds, ignores tests that need what this machine lacks.
fn set_flags_of_ignored_tests(profile: &str) {
    println!("cargo:rerun-if-env-changed={TEST_POSTGRES_URL}");
    for (flag, is_met) in NEEDS_OF_TESTS {
        println!("cargo:rustc-check-cfg=cfg({flag})");
        if profile == "debug" && !is_met() {
            println!("cargo:rustc-cfg={flag}");
        }
    }
}

fn succeeds(command: &mut Command) -> bool {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Whether a program is in PATH or where Debian installs it.
fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let found = env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin")])
        .chain(versions.flatten().map(|version| version.path().join("bin")))
        .map(|directory| directory.join(program))
        .find(|file| file.is_file());
    // Watching a missing file would cause a rebuild each time.
    if let Some(file) = &found {
        println!("cargo:rerun-if-changed={}", file.display());
    }
    found.is_some()
}

/// The commit that is checked out; `None` when this package is not the root of a git
/// repository, such as a tarball unpacked inside another one.
fn commit() -> Option<String> {
    let root = Path::new(&git(&["rev-parse", "--show-toplevel"])?).canonicalize();
    let here = Path::new(&env::var("CARGO_MANIFEST_DIR").ok()?).canonicalize();
    if root.ok()? != here.ok()? {
        return None;
    }
    // HEAD names the branch, and the branch's file names the commit. Watching a missing file would
    // cause a rebuild each time.
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for place in [Some("HEAD"), branch.as_deref()].into_iter().flatten() {
        let file = git(&["rev-parse", "--git-path", place])?;
        // A packed branch has no file before its next commit.
        let watched = Path::new(&file).ancestors().find(|path| path.exists())?;
        println!("cargo:rerun-if-changed={}", watched.display());
    }
    git(&["rev-parse", "--short=7", "HEAD"])
}

/// The output of git; `None` if git is missing, fails or prints nothing.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.trim();
    (output.status.success() && !line.is_empty()).then(|| line.to_owned())
}
