// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// FileName is the name of the rules of all operators; those of own SLIs of an
// operator are FileName-OPERATOR.
const FileName = "bellwether-slo"

// File is a set of rules that Prometheus takes or refuses as one.
type File struct {
	Name string
	// Operator is empty for the rules of all operators.
	Operator string
	Groups   []monitoringv1.RuleGroup
	// Hash is of the groups, and also recorded by one of the rules.
	Hash string
}

// files makes the rules of all subjects. Without a subject there are none: a hub
// that manages nothing has nothing to alert on.
func files(in Input, subjects []*subject) ([]File, error) {
	if len(subjects) == 0 {
		return nil, nil
	}
	set := slo.Set{Default: slo.DefaultProfile(), RunbookURL: in.RunbookURL, DashboardURL: in.DashboardURL}
	for _, s := range subjects {
		set.Operators = append(set.Operators, s.rules)
	}
	// Rules must not depend on the order in which operators were made.
	slices.SortFunc(set.Operators, func(a, b slo.Operator) int { return strings.Compare(a.Name, b.Name) })
	rules, err := slo.Build(set)
	if err != nil {
		return nil, fmt.Errorf("build rules: %w", err)
	}
	addRunbooks(rules.Groups, in.RunbookURL, subjects)
	out := []File{newFile("", rules.Groups)}
	for _, own := range rules.Own {
		out = append(out, newFile(own.Operator, []monitoringv1.RuleGroup{own.Group}))
	}
	for i := range out {
		if out[i].Hash, err = mark(&out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func newFile(operator string, groups []monitoringv1.RuleGroup) File {
	name := FileName
	if operator != "" {
		name += "-" + operator
	}
	return File{Name: name, Operator: operator, Groups: groups}
}

// mark adds a rule that records the hash of all others. Prometheus gives queries
// back in a notation of its own, so they cannot be compared; this label can.
func mark(f *File) (string, error) {
	text, err := json.Marshal(f.Groups)
	if err != nil {
		return "", fmt.Errorf("hash rules: %w", err)
	}
	sum := sha256.Sum256(text)
	hash := hex.EncodeToString(sum[:6])
	labels := map[string]string{series.Hash: hash}
	if f.Operator != "" {
		labels[series.Operator] = f.Operator
	}
	rule := monitoringv1.Rule{Record: series.SLORulesInfo, Expr: intstr.FromString("vector(1)"), Labels: labels}
	last := len(f.Groups) - 1
	if f.Operator == "" {
		last = slices.IndexFunc(f.Groups, func(g monitoringv1.RuleGroup) bool { return g.Name == markedGroup })
	}
	if last < 0 {
		return "", fmt.Errorf("mark rules: there is no group %s", markedGroup)
	}
	f.Groups[last].Rules = append(slices.Clone(f.Groups[last].Rules), rule)
	return hash, nil
}

// markedGroup takes the marker of the rules of all operators.
const markedGroup = "bellwether-objectives"

const annotationRunbook = "runbook_url"

// addRunbooks gives the alerts of operators with a runbook of their own that link.
func addRunbooks(groups []monitoringv1.RuleGroup, fleet string, subjects []*subject) {
	urls := map[string]string{}
	for _, s := range subjects {
		if s.slo.Spec.RunbookURL != "" {
			urls[s.rules.Name] = s.slo.Spec.RunbookURL
		}
	}
	if len(urls) == 0 {
		return
	}
	var link strings.Builder
	for i, operator := range slices.Sorted(maps.Keys(urls)) {
		word := "if"
		if i > 0 {
			word = "else if"
		}
		fmt.Fprintf(&link, "{{ %s eq $labels.operator %q }}%s%s", word, operator, urls[operator], anchor)
	}
	if fleet != "" {
		link.WriteString("{{ else }}" + fleet + anchor)
	}
	link.WriteString("{{ end }}")
	annotateAlerts(groups, annotationRunbook, link.String())
}

func annotateAlerts(groups []monitoringv1.RuleGroup, name, text string) {
	for _, g := range groups {
		for i := range g.Rules {
			if r := &g.Rules[i]; r.Alert != "" {
				r.Annotations = maps.Clone(r.Annotations)
				if r.Annotations == nil {
					r.Annotations = map[string]string{}
				}
				r.Annotations[name] = text
			}
		}
	}
}

// anchor is the SLI's heading in a runbook, as in alerts without a runbook of their own.
const anchor = `#{{ reReplaceAll ":.*" "" $labels.sli }}`
