// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package ruleset

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/alerts/slo"
)

// FileName is the name of the rules of all operators. slo.FileName derives the names for operators' own SLIs from it.
const FileName = "bellwether-slo"

// File is a set of rules that Prometheus accepts or refuses as a whole.
type File struct {
	Name string
	// Operator is empty for the rules of all operators.
	Operator types.NamespacedName
	Groups   []monitoringv1.RuleGroup
	// Hash is the hash of the groups. One of the rules also records it.
	Hash string
}

// isForAll reports whether the file has the rules of all operators.
func (f File) isForAll() bool { return f.Operator == types.NamespacedName{} }

// buildFiles returns the rules of all subjects. named are operators that OperatorSLOs name
// and that do not exist; an alert reports them. If there are no subjects and no named
// operators, there are no rules, because a hub that manages nothing needs no alerts.
func buildFiles(in Input, subjects []*subject, named []types.NamespacedName) ([]File, error) {
	if len(subjects) == 0 && len(named) == 0 {
		return nil, nil
	}
	set := slo.Set{Default: slo.DefaultProfile(), RunbookURL: in.RunbookURL, DashboardURL: in.DashboardURL,
		WithoutAlerts: in.WithoutAlerts, Named: named}
	for _, s := range subjects {
		set.Operators = append(set.Operators, s.rules)
	}
	// Rules must not depend on the order in which operators were created.
	slices.SortFunc(set.Operators, func(a, b slo.Operator) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	rules, err := slo.BuildPart(set, in.Part)
	if err != nil {
		return nil, fmt.Errorf("build rules: %w", err)
	}
	addRunbooks(rules.Groups, subjects)
	out := []File{{Name: FileName, Groups: rules.Groups}}
	for _, own := range rules.Own {
		out = append(out, File{Name: slo.FileName(FileName, own.Operator), Operator: own.Operator,
			Groups: []monitoringv1.RuleGroup{own.Group}})
	}
	for i := range out {
		if out[i].Hash, err = addMarker(&out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// addMarker adds a rule that records the hash of all other rules, and returns the hash. Prometheus returns
// queries in its own notation, so queries cannot be compared, but the label of this rule can be compared.
func addMarker(f *File) (string, error) {
	text, err := json.Marshal(f.Groups)
	if err != nil {
		return "", fmt.Errorf("hash rules: %w", err)
	}
	sum := sha256.Sum256(text)
	hash := hex.EncodeToString(sum[:6])
	labels := map[string]string{series.Hash: hash}
	if !f.isForAll() {
		labels[series.OperatorNamespace], labels[series.Operator] = f.Operator.Namespace, f.Operator.Name
	}
	rule := monitoringv1.Rule{Record: series.SLORulesInfo, Expr: intstr.FromString("vector(1)"), Labels: labels}
	marked := len(f.Groups) - 1
	if f.isForAll() {
		marked = slices.IndexFunc(f.Groups, func(g monitoringv1.RuleGroup) bool { return g.Name == markedGroup })
	}
	if marked < 0 {
		return "", fmt.Errorf("mark rules: there is no group %s", markedGroup)
	}
	f.Groups[marked].Rules = append(slices.Clone(f.Groups[marked].Rules), rule)
	return hash, nil
}

// markedGroup contains the marker of the rules of all operators.
const markedGroup = "bellwether-objectives"

// addRunbooks changes the runbook links in the alerts of operators that have their own runbook.
func addRunbooks(groups []monitoringv1.RuleGroup, subjects []*subject) {
	urls := map[types.NamespacedName]string{}
	for _, s := range subjects {
		if s.slo.Spec.RunbookURL != "" {
			urls[s.rules.ID()] = s.slo.Spec.RunbookURL
		}
	}
	if len(urls) == 0 {
		return
	}
	compareNames := func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) }
	operators := slices.SortedFunc(maps.Keys(urls), compareNames)
	for _, g := range groups {
		for i := range g.Rules {
			r := &g.Rules[i]
			// Only alerts with these scopes are about an operator.
			if scope := r.Labels[series.Scope]; scope != series.ScopeOperator && scope != series.ScopeRelease {
				continue
			}
			r.Annotations = maps.Clone(r.Annotations)
			r.Annotations[slo.AnnotationRunbook] = buildRunbook(operators, urls, slo.RunbookAnchor(r.Alert),
				r.Annotations[slo.AnnotationRunbook])
		}
	}
}

// buildRunbook returns a template that chooses a link by the operator of an
// alert. defaultLink is the link for all other operators, which may be empty.
func buildRunbook(operators []types.NamespacedName, urls map[types.NamespacedName]string, anchor,
	defaultLink string) string {
	var link strings.Builder
	for i, operator := range operators {
		word := "if"
		if i > 0 {
			word = "else if"
		}
		fmt.Fprintf(&link, "{{ %s and (eq $labels.operator_namespace %q) (eq $labels.operator %q) }}%s%s", word,
			operator.Namespace, operator.Name, urls[operator], anchor)
	}
	if defaultLink != "" {
		link.WriteString("{{ else }}" + defaultLink)
	}
	link.WriteString("{{ end }}")
	return link.String()
}
