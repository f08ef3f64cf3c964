"""gitleaks' own samples, made by its own code: what each of its rules must find and must not.

They are written in Go, partly by functions that make them up. A small module is put together in a
temporary folder: gitleaks' rules as they are, and stubs of the little that they import, whose `Validate`
prints the samples. It needs `go` (1.18 or later) and nothing from the network.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MODULE: Final = "github.com/zricethezav/gitleaks/v8"
GENERATE: Final = "cmd/generate/config"

CONFIG: Final = """package config

import (
	"regexp"
	"strings"
)

type AllowlistMatchCondition int

const (
	AllowlistMatchOr AllowlistMatchCondition = iota
	AllowlistMatchAnd
)

type Allowlist struct {
	Description    string
	MatchCondition AllowlistMatchCondition
	Commits        []string
	Paths          []*regexp.Regexp
	RegexTarget    string
	Regexes        []*regexp.Regexp
	StopWords      []string
}

func (list *Allowlist) ContainsStopWord(text string) (bool, string) {
	for _, word := range list.StopWords {
		if strings.Contains(strings.ToLower(text), strings.ToLower(word)) {
			return true, word
		}
	}
	return false, ""
}

type Required struct{}

type Rule struct {
	RuleID        string
	Description   string
	Entropy       float64
	SecretGroup   int
	Regex         *regexp.Regexp
	Path          *regexp.Regexp
	Tags          []string
	Keywords      []string
	Allowlists    []*Allowlist
	RequiredRules []*Required
	SkipReport    bool
}
"""

VALIDATE: Final = """package utils

import (
	"encoding/json"
	"os"

	"github.com/zricethezav/gitleaks/v8/config"
)

func show(rule config.Rule, path, text string, secret bool) {
	json.NewEncoder(os.Stdout).Encode(map[string]any{
		"rule": rule.RuleID, "path": path, "text": text, "secret": secret,
	})
}

func Validate(rule config.Rule, hits []string, misses []string) *config.Rule {
	for _, text := range hits {
		show(rule, "", text, true)
	}
	for _, text := range misses {
		show(rule, "", text, false)
	}
	return &rule
}

func ValidateWithPaths(rule config.Rule, hits map[string]string, misses map[string]string) *config.Rule {
	for path, text := range hits {
		show(rule, path, text, true)
	}
	for path, text := range misses {
		show(rule, path, text, false)
	}
	return &rule
}
"""

SECRETS: Final = """package secrets

import (
	"math/rand"
	"regexp/syntax"
	"strings"
)

var random = rand.New(rand.NewSource(SEED))

func NewSecret(pattern string) string {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		panic(err)
	}
	var made strings.Builder
	write(&made, parsed)
	return made.String()
}

func write(made *strings.Builder, node *syntax.Regexp) {
	switch node.Op {
	case syntax.OpLiteral:
		made.WriteString(string(node.Rune))
	case syntax.OpCharClass:
		made.WriteRune(member(node.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		made.WriteRune(rune(33 + random.Intn(94)))
	case syntax.OpAlternate:
		write(made, node.Sub[random.Intn(len(node.Sub))])
	case syntax.OpStar:
		repeat(made, node.Sub[0], 0, 10)
	case syntax.OpPlus:
		repeat(made, node.Sub[0], 1, 10)
	case syntax.OpQuest:
		repeat(made, node.Sub[0], 0, 1)
	case syntax.OpRepeat:
		most := node.Max
		if most < 0 {
			most = node.Min + 10
		}
		repeat(made, node.Sub[0], node.Min, most)
	default:
		for _, sub := range node.Sub {
			write(made, sub)
		}
	}
}

func repeat(made *strings.Builder, node *syntax.Regexp, least, most int) {
	for count := least + random.Intn(most-least+1); count > 0; count-- {
		write(made, node)
	}
}

func member(ranges []rune) rune {
	var printable []rune
	for at := 0; at < len(ranges); at += 2 {
		for each := ranges[at]; each <= ranges[at+1] && each < 127; each++ {
			if each >= 32 {
				printable = append(printable, each)
			}
		}
	}
	if len(printable) == 0 {
		return ranges[0]
	}
	return printable[random.Intn(len(printable))]
}
"""

REGEXP: Final = """package regexp

import "regexp"

type Regexp = regexp.Regexp

func MustCompile(pattern string) *Regexp { return regexp.MustCompile(pattern) }
"""

MAIN: Final = """package main

import "RULES"

func main() {
CALLED}
"""


@dataclass(frozen=True)
class Sample:
    rule: str
    path: str
    text: str
    secret: bool


def samples(repository: Path, seed: int) -> list[Sample]:
    """Of a checkout of gitleaks. The seed is of those that are made up."""
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder)
        _put_together(repository, module, seed)
        made = subprocess.run(
            ["go", "run", "./show"],
            cwd=module,
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
            env={**os.environ, "HOME": folder, "GOFLAGS": "-mod=mod", "GOPROXY": "off"},
        )
        return [Sample(**json.loads(line)) for line in made.stdout.splitlines()]


def _put_together(repository: Path, module: Path, seed: int) -> None:
    source = repository / GENERATE
    for folder in ("rules", "utils"):
        (module / GENERATE / folder).mkdir(parents=True)
        for file in (source / folder).glob("*.go"):
            if not file.name.endswith("_test.go") and file.name != "validate.go":
                shutil.copy(file, module / GENERATE / folder)
    called = "".join(f"\trules.{name}()\n" for name in _rules(source / "main.go"))
    files = {
        "go.mod": f"module {MODULE}\n\ngo 1.18\n",
        "config/config.go": CONFIG,
        "regexp/regexp.go": REGEXP,
        "cmd/generate/secrets/secrets.go": SECRETS.replace("SEED", str(seed)),
        f"{GENERATE}/utils/validate.go": VALIDATE,
        "show/main.go": MAIN.replace("RULES", f"{MODULE}/{GENERATE}/rules").replace("CALLED", called),
    }
    for name, text in files.items():
        (module / name).parent.mkdir(parents=True, exist_ok=True)
        (module / name).write_text(text, encoding="utf-8")


def _rules(main: Path) -> Iterator[str]:
    """Those that gitleaks ships, and no comment's."""
    for line in main.read_text(encoding="utf-8").splitlines():
        if match := re.match(r"\s*rules\.(\w+)\(\),", line):
            yield match[1]
