"""The shapes of lines that say what went wrong or how it ended: data, each with its own proof.

A pattern is matched at the beginning of a line, without colours, line end and what a log puts before it.
Every repetition is bounded, so that no line takes long.
"""

from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["alone", "heading", "traceback", "place", "numbered", "timed", "exception"]
"""A `heading` takes the line below it along, a `traceback` the line that ends it, a `place` the line above,
unless that is a warning. What is `numbered` may be any list, and counts only in a text that sums up its
failures. `timed` shapes are read only behind a time. An `exception` must name one."""


@dataclass(frozen=True, slots=True)
class Shape:
    name: str
    pattern: str
    hits: tuple[str, ...]
    """The first line of each is marked."""
    misses: tuple[str, ...]
    kind: Kind = "alone"


HINT: Final = (
    r"rror|RROR|f(?:ail|atal| '(?<=instance of '))|F(?:ail|AIL|atal|ATA|ault|TL)|p(?:anic|assed)|P(?:ANI|NC"
    r"|ermission denied \()|E(?:RR|MERG|LIFE|xit|XIT|xpected: |rr(?:Im|no)|  |\d{4} \d|: )"
    r"|x(?:cept|it(?: |ed |_CODE))"
    r"|T(?:raceb|ermi|imeout)|C(?:RIT|ONFL|aused|rash)|Abort|S(?:EVERE|egm|top|UMM)|Viol|Killed|What went"
    r"|I(?:nterr|llegal|mageP|nternal)|k(?:illed|ipped| (?<=not ok ))|z(?:ero code|ed as )|Un(?:h|ca|def)"
    r"|B(?:ail |us )|M(?:sg|ain) |O(?:RA-|OMK|ut of)|G: DATA RACE|Received: |>   "
    r"|:(?:in |:[A-Z]\w{1,80} \(|[56]0\b| ?\"?(?:crit|alert|emerg)"
    r"|(?<=signal:) |(?<=what\(\):) |(?<=crit:) |(?<=curl:) |(?<=ld:) "
    r"| (?:No |Is a|Not a|Perm|Oper|Dir|File ex|Read-|Text f|Dev|Arg|Bro|Input/|Cannot|Too m|Addr|Conn|Net"
    r"|Name or|undef|not f|command|no mat|no such|file:|/))"
    r"|\[(?:alert|emerg|crit)|\.(?:go|pyi?):\d|/(?<=rspec \./)|=(?:=\d| no tests|crit)"
    r"|\)(?:(?<=^\d\))|(?<=[ m]\d\))|(?<=^\d\d\))|(?<=[ m]\d\d\))) "
    r"|\*\*(?:\*| \()|-->|___ |●|✕|✖|✗|✘|\xd7|!(?:!| [A-Z\[])"
)
"""Some part of this is in every line that fits any shape; the others are passed over quickly.

Each alternative begins with one certain character, and few with a common one: that makes it quick.
"""

_LOUD: Final = r"(?:ERROR|FATAL|CRITICAL|PANIC|SEVERE|EMERG(?:ENCY)?)"
_PATH: Final = r"(?!//|/\*)(?:[A-Za-z]:)?[^\s:()\"'`=,;|<>#*][^:\n()\"'`=,;|<>*]{0,200}"
_FAULTS: Final = (
    r"(?:Killed|Terminated|Aborted|Segmentation fault|Bus error|Illegal instruction"
    r"|Floating point exception|Trace/breakpoint trap|Out of memory)"
)
_ERRNO: Final = (
    r"(?:command not found|not found|No such (?:file or directory|process|host)|Permission denied"
    r"|Operation not permitted|Is a directory|Not a directory|Directory not empty|File exists"
    r"|No space left on device|Read-only file system|Text file busy|Device or resource busy"
    r"|Argument list too long|Broken pipe|Input/output error|Cannot allocate memory|Exec format error"
    r"|Too many open files|Address already in use|Connection (?:refused|reset by peer|timed out)"
    r"|Name or service not known|Network is unreachable|No route to host|Operation timed out)"
)
_TYPE: Final = r"(?:[\w$]{1,80}(?:\.|::|\\)){0,12}[A-Z]\w{1,100}"
_NOT_CODE: Final = r"(?!.{0,900}[,;{(\[]$)"
"""A line of source that ends like this goes on; a message does not."""

_ENDINGS: Final = (
    Shape(
        "exit code",
        r"\W{0,3}(?:exit|Exit|EXIT)(?:ed)?(?: with)?[ _](?:code|status|CODE)"
        r"(?: ?: ?|=| )-?\d{1,10}\W{0,3}$",
        ("exit status 1", "Exit code: 137", "[exited with code 0]", "exit status: 101", "EXIT_CODE=2"),
        ("exit 1", "exit_code = run()", "exit codes 1 and 2 are errors", "exit status 1 means a failure"),
    ),
    Shape(
        "ended with a code",
        r"\[?(?:[Ee]rror:? |ERROR:? )?(?:The )?(?:[Cc]ommand|[Pp]rocess|[Ss]cript|[Cc]ontainer|[Cc]hild"
        r"|[Jj]ob|[Tt]ask|[Pp]rogram|[Ss]ubprocess)\b.{0,400}"
        r"(?:exited|completed|finished|failed|terminated|returned|successfully:).{0,40}"
        r"(?:code|status):? -?\d{1,10}\W{0,3}$",
        (
            "Process exited with code 137",
            "[Process completed with exit code 1.]",
            "Command failed with exit code 2.",
            "error: command 'gcc' failed with exit code 1",
            "Process finished with exit code 0",
            "The command '/bin/sh -c make' returned a non-zero code: 2",
        ),
        ("Process exits with code 1 if a file is missing", "process.exit(code)", "task.status = 1"),
    ),
    Shape(
        "signal",
        rf"(?:\S{{1,200}}: line \d{{1,6}}: +\d{{1,9}} +{_FAULTS}\b"
        rf"|{_FAULTS}(?:: \d{{1,2}}| \(core dumped\))?$"
        r"|signal: [a-z ]{3,40}(?:\(core dumped\))?$|Out of memory: Kill)",
        (
            "Killed",
            "Segmentation fault (core dumped)",
            "./run.sh: line 3: 4711 Killed                  ./server",
            "signal: segmentation fault (core dumped)",
            "Out of memory: Killed process 4711 (java) total-vm:1kB",
        ),
        ("Killed by the watchdog, it starts again", "Terminated = 3", "    Aborted,", "signal: SIGTERM,"),
    ),
    Shape(
        "make",
        r"(?:\S{0,100}make(?:\.exe)?(?:\[\d{1,3}\])?: \*\*\* |CMake Error|FAILED: \S)",
        (
            "make: *** [Makefile:12: test] Error 2",
            "gmake[3]: *** No rule to make target 'x'.  Stop.",
            "CMake Error at CMakeLists.txt:3 (find_package):",
            "FAILED: obj/main.o",
        ),
        ("*** make it bold ***", "make: Nothing to be done for 'all'.", "FAILED = 3"),
    ),
    Shape(
        "npm",
        r" {0,2}(?:npm (?:ERR!|error)(?: |$)|gyp ERR! |ERR_PNPM_|ELIFECYCLE\b)",
        ("npm ERR! code ELIFECYCLE", "npm error code E404", "ERR_PNPM_NO_LOCKFILE  Cannot install"),
        ("npm warn deprecated x", "npm errors", "The npm ERR! lines"),
    ),
    Shape(
        "build failed",
        r"(?:\[\w{4,5}\] {0,2})?(?:\*\* )?"
        r"(?:BUILD FAIL(?:ED|URE)|COMPILATION ERROR|FAILURE: |Build FAILED|FAILURES!)"
        r"|> Task \S{1,200} FAILED$|//\S{1,200} +(?:FAILED|TIMEOUT|NO STATUS)\b"
        r"|\S{1,200}\.service: (?:Failed|Main process exited)",
        (
            "[INFO] BUILD FAILURE",
            "BUILD FAILED in 3s",
            "FAILURE: Build failed with an exception.",
            "> Task :test FAILED",
            "//app:unit_test        FAILED in 0.3s",
            "app.service: Main process exited, code=exited, status=1/FAILURE",
        ),
        ("BUILD SUCCESSFUL in 3s", "> Task :test", "// FAILED is a state"),
    ),
    Shape(
        "what went wrong",
        r"\* What went wrong:$|Caused by:$|thread '.{0,200}' (?:\(\d{1,20}\) )?panicked at .{1,400}:$"
        r"|terminate called after throwing",
        (
            "* What went wrong:",
            "thread 'main' panicked at src/main.rs:4:5:",
            "Caused by:",
            "terminate called after throwing an instance of 'std::bad_alloc'",
        ),
        ("What went wrong:", "* What went wrong: a story", "// thread 'main' panicked at x:"),
        "heading",
    ),
)

_TESTS: Final = (
    Shape(
        "pytest",
        r"(?:\[gw\d{1,3}\] \[ *\d{1,3}%\] )?(?:FAILED|ERROR) (?:\S{1,300}::\S|\S{1,300}\.py\b)"
        r"|\S{1,300}\.py::.{1,300} (?:FAILED|ERROR) +(?:\[ *\d{1,3}%\])?$|E {2,}\S|INTERNALERROR> "
        r"|> {3,40}assert "
        r"|_{3,80} \S.{0,200} _{3,80}$|!{3,80} .{1,200} !{3,80}$"
        r"|=+ (?=[^=\n]{0,200}\d (?:failed|passed|errors?|skipped)|no tests ran)"
        r"[^=\n]{0,200} in \d[^=\n]{0,40} =+$"
        r"|\d{1,7} (?:failed|passed|errors?|skipped)\b[^=\n]{0,200} in \d[\d.]{0,12}s\b"
        r"|\S{1,300}\.py:\d{1,7}: (?:[A-Z]\w{0,80}(?:Error|Exception|Exit|Interrupt)|Failed)$",
        (
            "FAILED tests/x.py::test_y - AssertionError",
            "ERROR tests/x.py - ImportError: no module",
            "E       assert 1 == 2",
            ">       assert total(cart) == 3",
            "=== 3 failed, 10 passed in 0.12s ===",
            "3 failed, 10 passed, 1 warning in 62.12s (0:01:02)",
            "_______________ test_name[a b] _______________",
            "tests/x.py::test_y FAILED              [ 10%]",
            "tests/x.py:12: AssertionError",
            "!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!",
        ),
        (
            "ERROR tests are slow",
            "E = 2.718",
            "=== Heading ===",
            "____________",
            "3 failed attempts",
            "E ",
            "> assert x",
        ),
    ),
    Shape(
        "unittest",
        r"(?:FAIL|ERROR): \w{1,200} \([\w.]{1,300}\)|FAILED \((?:failures|errors|skipped|unexpected)[ =]",
        ("FAIL: test_x (mod.Case)", "ERROR: test_x (mod.Case.test_x)", "FAILED (failures=1)"),
        ("FAIL: (x)", "FAILED (see below)"),
    ),
    Shape(
        "go test",
        r"\s{0,16}--- FAIL: |FAIL(?:$|\t\S)|\s{1,16}\S{1,100}_test\.go:\d{1,6}: |panic: (?!\w+\(\))"
        r"|fatal error: [a-z]",
        (
            "--- FAIL: TestX (0.00s)",
            "    --- FAIL: TestX/sub (0.00s)",
            "FAIL\tpkg\t0.1s",
            "FAIL",
            "    x_test.go:12: got 1 want 2",
            "panic: runtime error: index out of range [3] with length 3",
            "fatal error: all goroutines are asleep - deadlock!",
        ),
        (
            "--- PASS: TestX (0.00s)",
            'panic("unreachable")',
            "FAILS",
            "see x_test.go:12: there",
            "// panic: x",
        ),
    ),
    Shape(
        "cargo test",
        r"test .{1,300} \.\.\. FAILED$|test result: FAILED|thread '.{0,200}' panicked at ",
        (
            "test tests::x ... FAILED",
            "test result: FAILED. 1 passed; 1 failed",
            "thread 'a' panicked at 'x', m.rs:1",
        ),
        ("test tests::x ... ok", "test result: ok. 2 passed; 0 failed", "test it until it FAILED"),
    ),
    Shape(
        "jest and vitest",
        r" {0,2}(?:FAIL +\S{1,200}\.\w{1,5}(?= |$)|● (?=.{1,300} \u203a |Test suite failed))"
        r"| {2,4}● (?!Console)\S|\s{0,40}[✕✖✗✘] \S|\s{1,40}\xd7 [a-z]"
        r"|\s{0,12}(?:Tests|Test Suites|Test Files):? .{0,100}\b[1-9]\d{0,6} failed\b"
        rf"| {{4}}(?:Expected|Received): {_NOT_CODE}\S",
        (
            "  ● suite \u203a test",
            "● Test suite failed to run",
            "    ✕ does it (3 ms)",
            "   \xd7 does it 3ms",
            "Tests: 1 failed, 3 passed",
            " Test Files  1 failed | 2 passed (3)",
            "FAIL src/x.test.ts",
            " FAIL  src/x.test.ts > suite > test",
            "    Expected: 1",
            '    Received: "two"',
        ),
        (
            "Expected: a good day",
            "    Expected: 1,",
            "    Received: {",
            "● A bullet",
            "    ✓ does it",
            "3 \xd7 4",
            "FAIL fast",
            "Tests: 4 passed, 4 total",
            "  ● Console",
        ),
    ),
    Shape(
        "numbered failures",
        r" {0,12}\d{1,4}\) \S",
        (
            "  1) should x\n  0 passing\n  1 failing",
            "  1) Cart adds up\n\n3 examples, 1 failure",
            "1) Tests\\CartTest::testTotal\n\nFAILURES!",
            "  1) test adds (CartTest)\n\n3 tests, 1 failure",
        ),
        ("  1) Open the lid", "1) Open the lid.\n2) Look inside.", "  1) one\n\n3 examples, 0 failures"),
        "numbered",
    ),
    Shape(
        "mocha, rspec, tap",
        r"\s{1,12}\d{1,6} failing$|\s{1,12}Failure/Error: |rspec \./\S{1,300}:\d{1,6} # "
        r"|\s{0,24}not ok(?: \d{1,7}\b| - )|Bail out!|# fail +[1-9]"
        r"| {1,12}\d{1,4}\) (?:\[\w{1,40}\] \u203a |should )"
        r"|\d{1,7} (?:examples?|tests?|runs?), .{0,60}\b[1-9]\d{0,6} (?:failures?|errors?)\b",
        (
            "  1 failing",
            "     Failure/Error: expect(x).to eq(2)",
            "rspec ./spec/x_spec.rb:3 # Cart adds up",
            "not ok 3 - x",
            "  1) should x",
            "  1) [chromium] \u203a x.spec.ts:3:5 \u203a adds up",
            "3 examples, 1 failure",
        ),
        ("ok 3 - x", "it is not ok 3 times", "3 examples, 0 failures", "not okay 3", "1) should we?"),
    ),
    Shape(
        "junit and others",
        r"(?:\[\w{4,7}\] {0,2})?Tests run: \d{1,7},(?=.{0,40}(?:Failures|Errors): [1-9])"
        r"|Tests: \d{1,7}, Assertions: .{0,60}(?:Failures|Errors): [1-9]|\[ {2}FAILED {2}\] "
        r"|\S{1,200} > .{1,200} FAILED$|\s{0,12}Failed \S{1,300} \[[\d<].{1,12}\]$|Failed! +- Failed: "
        r"|\s{0,8}\d{1,6}/\d{1,6} Test +#\d{1,6}: .{1,200}\*\*\*",
        (
            "Tests run: 3, Failures: 1",
            "[ERROR] Tests run: 3, Failures: 0, Errors: 2, Skipped: 0",
            "CartTest > total() FAILED",
            "[  FAILED  ] Cart.Total (0 ms)",
            "  Failed Shop.CartTest.Total [3 ms]",
            " 3/10 Test  #3: cart ....................***Failed    0.01 sec",
        ),
        ("Tests run: 3, Failures: 0, Errors: 0", "[       OK ] Cart.Total (0 ms)", "Failed attempts [3]"),
    ),
)

_COMPILERS: Final = (
    Shape(
        "file, line, error",
        rf"{_PATH}(?::\d{{1,7}}){{1,2}}(?:-\d{{1,7}})?: (?:fatal |internal compiler |runtime |syntax )?"
        r"[Ee]rror(?:\[[\w-]{1,40}\])?: ?\S",
        (
            "x.c:3:5: error: expected ';' before 'return'",
            "x.c:3:5: fatal error: x.h: No such file or directory",
            "X.java:5: error: cannot find symbol",
            'a.py:3: error: Name "x" is not defined  [name-defined]',
            "C:\\src\\a.cpp:3:5: error: no member",
            "lib/a b.hs:3:5: error: [GHC-88464]",
            "x.c:3:5: runtime error: signed integer overflow",
        ),
        ("x.c:3:5: warning: unused 'error'", "x.c:3:    error: label", "// x.c:3: error: as told"),
    ),
    Shape(
        "file(line): error",
        r"\s{0,8}(?:\d{1,3}>)?"
        + _PATH
        + r"\(\d{1,7}(?:,\d{1,7}){0,3}\) ?: (?:fatal )?error(?: [A-Z]{1,8}\d{2,6})?:"
        rf"|\s{{0,8}}{_PATH}:\d{{1,7}}:\d{{1,7}} - error(?: [A-Z]{{1,8}}\d{{2,6}})?:"
        r"|(?:LINK|MSBUILD|CSC) : (?:fatal )?error |(?:fatal )?error [A-Z]{1,8}\d{2,6}: \S",
        (
            "src/a.ts(3,5): error TS2322: Type 'x' is not assignable",
            "X.cs(3,5): error CS1002: ; expected [app.csproj]",
            "Program.cs(3,5): error CS1002: ; expected",
            "error CS1002: ; expected",
            "src/a.ts:3:5 - error TS2322: Type 'x'",
            '  /app/a.py:3:5 - error: Import "x" could not be resolved',
            "LINK : fatal error LNK1120: 1 unresolved externals",
        ),
        (
            "X.cs(3,5): warning CS0168: declared",
            "f(3): error is raised",
            "a.ts:3:5 - warning",
            "error 3: x",
        ),
    ),
    Shape(
        "position without a word",
        r"(?:vet: )?[\w./\\@-]{1,200}\.go:\d{1,7}:\d{1,5}: \S"
        r"|[\w./\\@-]{1,200}\.pyi?:\d{1,7}:\d{1,5}: (?:[A-VX-Z][A-Z]{0,4}\d{3,4} |[EF]\d{4}: )",
        (
            "./x.go:12:2: undefined: foo",
            "a.py:3:1: F401 `os` imported but unused",
            "a.py:3:0: E0401: Unable to import 'x' (import-error)",
        ),
        (
            "a.py:3:1: W291 trailing whitespace",
            "a.py:3:0: C0114: Missing docstring",
            "x.go:12:\tfoo()",
            "x.go:12:2",
        ),
    ),
    Shape(
        "eslint, and counts of errors",
        r"\s{1,8}\d{1,7}:\d{1,5}\s{1,8}(?:error|✖)\s{2,}\S"
        r"|(?:Found )?[1-9]\d{0,6} errors?(?:\.?$| generated\.$| in \d{1,7} files?\b)",
        (
            "  3:5  error  'x' is not defined  no-undef",
            "Found 3 errors in 1 file (checked 2 source files)",
            "1 error",
        ),
        ("  3:5  warning  Unexpected error  no-console", "  3:5 error", "0 errors", "3 errors were found"),
    ),
    Shape(
        "rustc",
        r"error(?:\[[A-Z]{1,4}\d{2,5}\])?: \S",
        (
            "error[E0308]: mismatched types",
            "error: failed to push some refs to 'x'",
            'error: could not compile `x` (bin "x") due to 1 previous error',
        ),
        ("error[0] = 3", "errors: 3", "    error: string", "error:"),
    ),
    Shape(
        "place of an error",
        r" {0,12}--> \S{1,300}:\d{1,7}:\d{1,5}$",
        ("  --> src/main.rs:4:5", "--> q.py:1:1"),
        ("a --> b:3:4", "  --> see below", "    x --> y"),
        "place",
    ),
    Shape(
        "linker",
        r".{0,600}: undefined reference to [`'\u2018]|Undefined symbols for architecture "
        r"|(?:\S{1,200}/)?ld(?:\.\w{1,8})?: (?!warning)\S",
        (
            "main.c:(.text+0x15): undefined reference to `foo'",
            "/usr/bin/ld: main.o: in function `main': undefined reference to 'foo'",
            "/usr/bin/ld: cannot find -lssl",
            "ld: symbol(s) not found for architecture arm64",
            "Undefined symbols for architecture arm64:",
        ),
        ("an undefined reference to a name", "ld: warning: directory not found for option '-Lx'"),
    ),
    Shape(
        "program: error",
        r"[\w./+-]{1,80}(?:\[\d{1,9}\])?: (?:fatal |internal )?(?:error|fatal|ERROR|FATAL):(?: |$)"
        r"|(?!(?:message|reason|cause|msg|text|title|name|type|default|err|e): )[a-z][\w.+-]{1,20}: "
        rf"Error: (?!(?:Final|type|string|any|null|err|nil)\b){_NOT_CODE}\S"
        r"|e: (?:file:|/|\w:\\)"
        r"|E: (?:Unable|Could|Failed|Package|Sub-process|The|Some|Version|Invalid) "
        r"|! (?:LaTeX|Undefined|Missing|Emergency|Package|Extra|Too) ",
        (
            "collect2: error: ld returned 1 exit status",
            "cc1plus: fatal error: x: No such file or directory",
            "psql: error: connection to server failed",
            "terraform: Error: Invalid provider configuration",
            "e: file:///app/A.kt:3:5 Unresolved reference: x",
            "E: Unable to locate package x",
            "! Undefined control sequence.",
        ),
        (
            "level: error",
            "state: fatal",
            "E: Element",
            "type: error",
            "reason: Error: no",
            "x: Error: new,",
        ),
    ),
)

_RUNTIMES: Final = (
    Shape(
        "traceback",
        r"[ |+]{0,40}(?:Exception Group )?Traceback \(most recent call last\):$",
        ("Traceback (most recent call last):", "    | Traceback (most recent call last):"),
        ("a Traceback (most recent call last): is", "# Traceback (most recent call last):"),
        "traceback",
    ),
    Shape(
        "exception",
        rf"(?:{_TYPE}(?:$|: (?!(?:Final|type|TypeAlias)\b){_NOT_CODE}\S)"
        rf"| {{2,12}}(?:\| )?{_TYPE}: (?!(?:[Ii]f|[Ww]hen|[Rr]aised|[Oo]n|[Ff]or|The|An?|typeof) )"
        rf"{_NOT_CODE}[^\s'\"{{\[(])",
        (
            "ValueError: bad thing",
            "module.CustomError: x",
            "KeyboardInterrupt",
            "java.lang.IllegalStateException: no",
            "TypeError: x is not a function",
            "    AssertionError: expected 1 to equal 2",
            "    | ValueError: 1",
        ),
        (
            "DeprecationWarning: old",
            "ValueError(x)",
            "    ValueError: If the thing is bad.",
            "    TimeoutError: Exception,",
            "class NotFoundError:",
            "HttpError: typeof x;",
            "ServerError: Final = 3",
        ),
        "exception",
    ),
    Shape(
        "uncaught",
        r'Exception in thread "|\s{0,8}(?:Caused by|Suppressed): [\w.$]{1,300}(?:$|:)|Uncaught [\w(]'
        r"|(?:\(node:\d{1,9}\) |\[)?UnhandledPromiseRejection|Unhandled (?:[Ee]xception|[Rr]ejection)[.: ]"
        r"|\s{0,4}\*\* \([A-Z][\w.]{1,200}\) |\s{1,8}what\(\): "
        r"|==\d{1,9}== ?(?:ERROR: |Invalid |ERROR SUMMARY: [1-9])"
        r"|SUMMARY: \w{4,20}Sanitizer|\S.{0,300}: Assertion [`'].{1,400}' failed\.?$"
        r"|\*\*\* .{1,80} \*\*\*: terminated|WARNING: DATA RACE$",
        (
            'Exception in thread "main" java.lang.NullPointerException',
            "Caused by: java.io.IOException: closed",
            "Uncaught TypeError: x is not a function",
            "(node:42) UnhandledPromiseRejectionWarning: Error: x",
            "Unhandled exception. System.InvalidOperationException: x",
            "** (RuntimeError) no",
            "==42==ERROR: AddressSanitizer: heap-use-after-free",
            "app: main.c:3: main: Assertion `x > 0' failed.",
            "WARNING: DATA RACE",
        ),
        ("Caused by: a bad cable", "Uncaught, it ends the program", "Unhandled: 3", "WARNING: DATA RACES"),
    ),
    Shape(
        "ruby and php",
        r"[^\s:'\"]{1,300}:\d{1,7}:in [`'][^`'\n]{1,200}': "
        r"|(?:PHP )?(?:Fatal|Parse|Recoverable fatal) error:\s"
        r"|(?:[A-Z]\w{0,80}::){1,8}[A-Z]\w{0,80} \(.{1,400}\):?$",
        (
            "x.rb:3:in `y': msg (NameError)",
            "app/x.rb:3:in 'Cart#y': undefined method 'z' for nil (NoMethodError)",
            "PHP Fatal error:  Uncaught Error: x in /app/a.php:3",
            "Parse error: syntax error, unexpected '}' in a.php on line 3",
            "ActiveRecord::RecordNotFound (Couldn't find Cart with 'id'=3):",
        ),
        ("x.rb:3:in `y'", "a fatal error: x", "Foo::Bar.new(x)"),
    ),
    Shape(
        "errno",
        rf"[\w./~\[(-][^\"\n]{{0,300}}: (?:\[Errno \d{{1,3}}\] )?{_ERRNO}$"
        r"|zsh: (?:command not found|no matches found|no such file)|curl: \(\d{1,3}\) "
        r"|'?[\w.-]{1,80}'? ?:? (?:is not recognized as|The term ')"
        r"|(?:[\w@.-]{1,200}: )?Permission denied \((?:[a-z-]{1,40},?){1,8}\)\.?$",
        (
            "bash: foo: command not found",
            "sh: 1: foo: not found",
            "cat: x: No such file or directory",
            "python3: can't open file 'x': [Errno 2] No such file or directory",
            "-bash: ./x: Permission denied",
            "cp: cannot stat 'x': No such file or directory",
            "zsh: command not found: foo",
            "curl: (6) Could not resolve host: x",
            "ssh: connect to host x port 22: Connection refused",
            "git@host: Permission denied (publickey).",
            "Permission denied (publickey).",
        ),
        (
            "Permission denied",
            "Permission denied (see below) is told",
            '"cat: x: No such file or directory",',
            "# bash: foo: command not found",
        ),
    ),
    Shape(
        "git",
        r"(?:fatal|FATAL): \S|CONFLICT \(|Automatic merge failed| ! \[(?:remote )?rejected\]"
        r"|remote: (?:error|fatal|ERROR|FATAL)\b|failed: \[",
        (
            "fatal: not a git repository (or any of the parent directories): .git",
            "CONFLICT (content): Merge conflict in x",
            " ! [rejected]        main -> main (fetch first)",
            "remote: error: File x is too large",
        ),
        ("fatal:", "fatal errors", "CONFLICT = 409", "remote: Counting objects"),
    ),
    Shape(
        "Error: at the beginning",
        rf"(?:[╷│|] {{0,4}})?Error: (?!(?:Final|type|string|any|null|err|nil)\b){_NOT_CODE}\S"
        r"|(?:docker: )?Error (?:from server|response from daemon)\b|FATAL ERROR: |Internal Server Error$"
        r"|\S{1,100} +\d{1,4}/\d{1,4} +"
        r"(?:CrashLoopBackOff|ImagePullBackOff|ErrImagePull|OOMKilled|Error|Evicted)\b",
        (
            "Error: Cannot find module 'x'",
            "│ Error: Invalid provider configuration",
            'Error from server (NotFound): pods "x" not found',
            "docker: Error response from daemon: no such image",
            "app-7c9f-x2   0/1   CrashLoopBackOff   5 (10s ago)   3m",
        ),
        (
            "Error: err,",
            "Error: string",
            "Errors: 3",
            "    Error: an indented word",
            "Error handling",
            "Error: {",
        ),
    ),
    Shape(
        "sql",
        r"ERROR \d{4} \([\w]{5}\)|(?:ORA|PLS|TNS|SP2)-\d{4,5}: |Msg \d{1,6}, Level \d{1,2}"
        r"|(?:Parse|Runtime|SQL) error\b.{0,20} near |psql:\S{1,300}:\d{1,7}: (?:ERROR|FATAL):",
        (
            "ERROR 1064 (42000): You have an error in your SQL syntax",
            "ORA-00942: table or view does not exist",
            "Msg 208, Level 16, State 1, Server x, Line 1",
            "Parse error near line 1: no such table: x",
            'psql:x.sql:3: ERROR:  relation "x" does not exist',
        ),
        ("ERROR 1064", "ORA-00942", "Parse errors near the end"),
    ),
)

_LOGS: Final = (
    Shape(
        "time and level",
        rf"[\[(]?\d[\d:.,/TZ+ -]{{7,40}}[\])]?[ \t|-]{{1,4}}[\[(<]?{_LOUD}[\])>]?(?:[ :|\t-]|$)",
        (
            "2026-01-01T00:00:00Z ERROR no",
            "[2026-01-01 00:00:00.123] [FATAL] no",
            "00:00:00,123 | CRITICAL | no",
        ),
        ("2026-01-01T00:00:00Z WARN ERROR no", "12345678 = ERROR", "3 - 4 ERROR"),
    ),
    Shape(
        "level first",
        rf"{_LOUD}(?:: {{0,4}}(?!\w{{1,40}}(?:\[\w{{1,40}}\])? = )\S|:[\w.]{{1,80}}:| {{1,8}}\["
        rf"| {{1,4}}[|-] | {{2,8}}\w| in \S|\t)|[\[<(]{_LOUD} {{0,4}}[\])>]:? {{0,8}}[^\s(\[:]"
        r"|\[(?:error|fatal|panic)\] {0,4}[^\s(\[:]"
        r"|##\[error\]|::error[ :]|(?:ERRO|FATA|PANI)\[\d{4,12}\] |(?:fail|crit): [\w.]{1,200}\[\d{1,9}\]$"
        r"|ERROR \[|=(?:ERROR|CRASH) REPORT=",
        (
            'ERROR:  relation "x" does not exist',
            "ERROR [main] com.acme.App - no",
            "ERROR:root:no",
            "[ERROR] Failed to execute goal",
            "[error] x.scala:3:5: not found",
            "##[error]Process completed with exit code 1.",
            "ERRO[0012] cannot pull image",
            "ERROR    app:app.py:12 no",
            "ERROR in ./src/index.js 3:5",
        ),
        (
            "ERROR = 40",
            "ERROR: Final = 40",
            "[ERROR](https://x)",
            "[error]: https://x",
            "ERROR,",
            "ERROR is a level",
            "[WARNING] no",
            "WARN: error in x",
        ),
    ),
    Shape(
        "level as a field",
        r"(?:[\w.]{1,40}=(?:\"[^\"\n]{0,200}\"|[^\s\"]{0,200}) ){0,6}(?:level|lvl|severity)=\"?"
        r"(?i:error|eror|fatal|panic|critical|crit|alert|emerg)\"? \w{1,40}="
        r"|\{(?=.{0,1500}\"(?:level|lvl|severity|levelname|log\.level|@l)\": ?(?:[56]0\b"
        r"|\"(?i:error|err|fatal|panic|critical|crit|alert|emergency)\"))\".{0,1500}\}",
        (
            "level=error msg=no",
            'time="2026-01-01T00:00:00Z" level=fatal msg="no such host"',
            '{"level":"error","msg":"no"}',
            '{"time":1,"level":50,"msg":"no"}',
            '{"msg": "no", "severity": "CRITICAL"}',
        ),
        (
            "level=error",
            "level=warning msg=error",
            '{"level":"info","msg":"error"}',
            '    {"level": "error"},',
        ),
    ),
    Shape(
        "level behind a time",
        rf"(?:[\w./:@\[\]()#$-]{{1,80}} {{1,8}}(?:[|-] {{1,4}})?){{0,4}}[\[(<]?{_LOUD}[\])>]?(?:[ :|\t-]|$)"
        r"|\[\w{1,40}:(?:error|crit|alert|emerg)\]|(?:ERR|FTL|PNC)\b",
        (
            "2026-01-01 00:00:00,123 - app.db - ERROR - no",
            "2026-01-01T00:00:00Z ERROR no",
            "2026-01-01 00:00:00 app worker-3 CRITICAL no",
            "[Thu Jan 01 00:00:00 2026] [core:error] [pid 3] no",
            "12:00:01 ERR no",
        ),
        (
            "2026-01-01T00:00:00Z INFO ERROR is a level",
            "2026-01-01T00:00:00Z WARN error: no",
            "app worker ERROR no",
        ),
        "timed",
    ),
)

SHAPES: Final = (*_LOGS, *_ENDINGS, *_TESTS, *_COMPILERS, *_RUNTIMES)
