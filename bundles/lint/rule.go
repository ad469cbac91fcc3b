// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lint judges registry+v1 bundles: it says what of a bundle would not
// install, would strand a cluster, or would lose data, before anybody
// publishes it.
//
// Its input is a bundle as read by package bundles, every version published
// before it, and the time. It is pure: it opens no file but those of the
// fs.FS that it is handed, has no client, no registry and no clock, and prints
// nothing but what a reporter writes to the writer it is given.
//
// Rules are values. Each has an id that never changes, and examples that are
// tested: examples/<id>.bad.txtar and examples/<id>.good.txtar, which hold
// files to put over the bundle in testdata/base (see examples_test.go for
// their format).
package lint

import (
	"cmp"
	"embed"
	"io/fs"
	"slices"
	"strings"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/crd"
)

// Severity says how much a finding hurts.
type Severity string

// The severities, from the worst to the mildest.
const (
	// Error is for what breaks an install, an upgrade, or users of the operator, or what loses data.
	Error Severity = "error"
	// Warning is for what works until something else goes wrong.
	Warning Severity = "warning"
	// Info is for what the author may want to know.
	Info Severity = "info"
)

// severities are all of them, the worst first.
var severities = []Severity{Error, Warning, Info}

// AtLeast says whether s is as bad as t, or worse. An unknown severity is
// milder than all others.
func (s Severity) AtLeast(t Severity) bool {
	i, j := slices.Index(severities, s), slices.Index(severities, t)
	return i >= 0 && (j < 0 || i <= j)
}

// Rule is one thing that a bundle can have wrong with it.
type Rule struct {
	// ID is short, in lower case and with hyphens, such as crd-removed-field. It is in waivers, so it never changes.
	ID string
	// Title says in a few words what is wrong, without a full stop.
	Title string
	// Severity is that of the rule's findings, unless one carries its own.
	Severity Severity
	// Why describes the consequences; Fix says what to do. Both are sentences
	// in Markdown.
	Why, Fix string
	// Bad and Good are examples in txtar format; Rules fills them in from the files in examples/.
	Bad, Good string
	// Check returns what it finds. It sets neither Rule nor, unless it differs from the rule's, Severity of a Finding.
	// It is nil in rules about the waivers, which Run looks at itself.
	Check func(*Input) []Finding
}

// Input is what rules look at. They change nothing in it.
type Input struct {
	Bundle *bundles.Bundle
	// History is every version ever published, the oldest first, without Bundle itself. They may be reduced.
	History []*bundles.Bundle
	// Archive is what versions of the history were reduced with; it makes comparisons quick. It may be nil.
	Archive *crd.Archive
	// Unreadable are published versions that could not be read, and are not in History.
	Unreadable []Unreadable
	// Predecessor is the version that Bundle is an upgrade of; nil if there is none.
	Predecessor *bundles.Bundle
	// Files is the bundle's directory; nil where the bundle was read from something else.
	Files fs.FS
	// Images is what registries report about the bundle's images; nil if they
	// were not queried.
	Images ImageIndex
}

// Unreadable is a published version that no bundle can be made of.
type Unreadable struct {
	// Name says which one it is: a folder, an image, or the name of a bundle.
	Name string
	// Err says why, and names the file.
	Err error
}

// ImageIndex knows images of registries.
type ImageIndex interface {
	// Platforms returns what an image was built for as "os/architecture", such as linux/arm64. The error says why it
	// is not known.
	Platforms(image string) ([]string, error)
}

// Finding is one place at which a bundle breaks a rule.
type Finding struct {
	// Rule and Severity are set by Run.
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// File is relative to the bundle's directory; empty where the finding is about the bundle as a whole.
	File string `json:"file,omitempty"`
	// Line counts from 1; 0 is unknown.
	Line int `json:"line,omitempty"`
	// Path is the field, such as spec.versions[0].schema; empty where the finding is about the file as a whole.
	Path string `json:"path,omitempty"`
	// Message says what is wrong, in one sentence without a full stop.
	Message string `json:"message"`

	// earlier says that it concerns only published versions that do not upgrade to the bundle directly.
	earlier bool
}

// at returns a finding at a field of an object. The object may be nil: then it
// is about the bundle as a whole.
func at(o *bundles.Object, message string, path ...any) Finding {
	f := Finding{Message: message, Path: bundles.FieldPath(path...)}
	if o != nil {
		f.File, f.Line = o.File, o.Position(path...)
	}
	return f
}

//go:embed examples
var examples embed.FS

// Rules returns every rule, in the order in which they run and are listed.
func Rules() []Rule {
	rules := slices.Concat(
		operatorRules(),
		supplyChainRules(),
		compatibilityRules(),
		crdRules(),
		rbacRules(),
		runtimeRules(),
		webhookRules(),
		watchRules(), supportRules(),
		waiverRules(),
	)
	for i := range rules {
		rules[i].Bad = cmp.Or(rules[i].Bad, example(rules[i].ID, "bad"))
		rules[i].Good = cmp.Or(rules[i].Good, example(rules[i].ID, "good"))
	}
	return rules
}

// example is an embedded one; empty if there is none, which a test objects to.
func example(id, which string) string {
	text, err := examples.ReadFile("examples/" + id + "." + which + ".txtar")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text)) + "\n"
}
