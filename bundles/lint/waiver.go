// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/bellwether-dev/bellwether/internal/untrusted"
)

// WaiverFile is the usual name of the file of waivers. It is in the bundle's folder or in the working directory.
const WaiverFile = ".bellwether-lint.yaml"

// The ids of the rules about waivers.
const (
	ruleWaiverExpired = "waiver-expired"
	ruleWaiverUnused  = "waiver-unused"
)

// ErrBadWaivers means that a file of waivers is invalid.
var ErrBadWaivers = errors.New("bad waivers")

// Waiver is a decision to accept findings of one or more rules until a certain day.
type Waiver struct {
	// Rule is the id of a rule; "*" matches any text, as in crd-*.
	Rule string `json:"rule"`
	// File and Path limit the waiver to findings at this place; "*" matches any text. Empty means any place.
	File string `json:"file,omitempty"`
	Path string `json:"path,omitempty"`
	// Reason says why the findings are acceptable.
	Reason string `json:"reason"`
	// Expires is the last day, in UTC, on which the waiver is valid, such as 2026-12-31.
	Expires string `json:"expires"`

	// Line is the line of the waiver in its file, from 1.
	Line int `json:"-"`

	validUntil  time.Time
	rules       *regexp.Regexp
	files, path *regexp.Regexp
}

// ParseWaivers parses a file of waivers: a list under the key "waivers". Each waiver has rule, reason and expires, and
// optionally file and path. Errors wrap ErrBadWaivers and name the line.
func ParseWaivers(text []byte) ([]Waiver, error) {
	var in struct {
		Waivers []yamlv3.Node `yaml:"waivers"`
	}
	if err := untrusted.CheckYAML(text); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadWaivers, err)
	}
	decoder := yamlv3.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&in); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %w", ErrBadWaivers, err)
	}
	waivers := make([]Waiver, 0, len(in.Waivers))
	for i := range in.Waivers {
		w, err := parseWaiver(&in.Waivers[i])
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrBadWaivers, in.Waivers[i].Line, err)
		}
		waivers = append(waivers, w)
	}
	return waivers, nil
}

// waiverFields are the fields of a waiver, in the order in which error messages list them.
var waiverFields = []string{"rule", "file", "path", "reason", "expires"}

// parseWaiver parses and validates one waiver. Its rule must match a rule of this package that can be waived.
func parseWaiver(node *yamlv3.Node) (Waiver, error) {
	var fields map[string]string
	if err := node.Decode(&fields); err != nil {
		return Waiver{}, fmt.Errorf("a waiver has text fields only: %w", err)
	}
	for name := range fields {
		if !slices.Contains(waiverFields, name) {
			return Waiver{}, fmt.Errorf("a waiver has no field %q; it has %s", name, strings.Join(waiverFields, ", "))
		}
	}
	w := Waiver{Rule: fields["rule"], File: fields["file"], Path: fields["path"],
		Reason:  strings.TrimSpace(fields["reason"]),
		Expires: fields["expires"], Line: node.Line}
	w.rules = compileGlob(w.Rule)
	if w.Rule == "" || !slices.ContainsFunc(Rules(), func(r Rule) bool { return w.rules.MatchString(r.ID) }) {
		return Waiver{}, fmt.Errorf("there is no rule %q", w.Rule)
	}
	if w.Rule == ruleWaiverExpired || w.Rule == ruleWaiverUnused {
		return Waiver{}, fmt.Errorf("%s cannot be waived", w.Rule)
	}
	if w.Reason == "" {
		return Waiver{}, errors.New("a waiver needs a reason")
	}
	day, err := time.Parse(time.DateOnly, w.Expires)
	if err != nil {
		return Waiver{}, fmt.Errorf("a waiver needs a day on which it expires, such as 2026-12-31; %q is none",
			w.Expires)
	}
	w.validUntil, w.files, w.path = day.AddDate(0, 0, 1), compileGlob(w.File), compileGlob(w.Path)
	return w, nil
}

// compileGlob returns an expression that matches a whole text, in which "*" matches any text. An empty pattern matches
// everything. The patterns of package path are not suitable, because brackets in field paths have a meaning in them.
func compileGlob(pattern string) *regexp.Regexp {
	if pattern == "" {
		pattern = "*"
	}
	return regexp.MustCompile(`\A(?s:` + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`) + `)\z`)
}

// covers reports whether the waiver is about a finding. It ignores the expiry.
func (w *Waiver) covers(f Finding) bool {
	return w.rules.MatchString(f.Rule) && w.files.MatchString(f.File) && w.path.MatchString(f.Path)
}

// waiverMatcher finds the waiver of each finding and records which waivers are used.
type waiverMatcher struct {
	waivers []Waiver
	used    []bool
	now     time.Time
}

// findWaiver returns the index of the first valid waiver that covers a finding, or -1. It marks every waiver that
// covers the finding as used, so that the result for overlapping waivers does not depend on their order.
func (w *waiverMatcher) findWaiver(f Finding) int {
	found := -1
	for i := range w.waivers {
		if !w.waivers[i].covers(f) {
			continue
		}
		w.used[i] = true
		if found < 0 && w.now.Before(w.waivers[i].validUntil) {
			found = i
		}
	}
	return found
}

// reportWaivers returns findings about expired and unused waivers. It skips waivers whose rules did not run.
func (w *waiverMatcher) reportWaivers(rules []Rule, file string) []Finding {
	severity := map[string]Severity{}
	for _, r := range rules {
		severity[r.ID] = r.Severity
	}
	var out []Finding
	add := func(rule string, waiver Waiver, message string) {
		if _, ran := severity[rule]; ran {
			out = append(out, Finding{Rule: rule, Severity: severity[rule], File: file, Line: waiver.Line,
				Message: message})
		}
	}
	for i, waiver := range w.waivers {
		ran := slices.ContainsFunc(rules, func(r Rule) bool { return waiver.rules.MatchString(r.ID) })
		switch {
		case !ran: // it is not known whether there are findings that the waiver covers
		case !w.now.Before(waiver.validUntil):
			add(ruleWaiverExpired, waiver, fmt.Sprintf("the waiver of %s expired on %s", waiver.Rule, waiver.Expires))
		case !w.used[i]:
			add(ruleWaiverUnused, waiver, fmt.Sprintf("nothing is left that the waiver of %s is about", waiver.Rule))
		}
	}
	return out
}

// listWaiverRules returns the rules about waivers. They have no Check; reportWaivers implements them.
func listWaiverRules() []Rule {
	return []Rule{{
		ID: ruleWaiverExpired, Title: "A waiver has expired", Severity: Error,
		Why: "A waiver accepts findings until a certain day. That day has passed, so the findings count again, " +
			"and the decision must be reviewed.",
		Fix: "Fix what was waived and delete the waiver, or review the decision and set a later day.",
	}, {
		ID: ruleWaiverUnused, Title: "A waiver covers nothing", Severity: Warning,
		Why: "The finding was fixed, or the waiver never matched. If it stays, it hides the next finding of " +
			"that kind.",
		Fix: "Delete the waiver, or correct its `file` and `path`.",
	}}
}
