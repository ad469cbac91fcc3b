// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package ruleset

import (
	"fmt"
	"slices"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Prometheus is the state of the rules as reported by Prometheus.
type Prometheus struct {
	// Trouble is the reason why the state is unknown; nil if it is known.
	Trouble *Trouble
	Groups  []Group
	// Retention is how long samples are kept. 0 is no limit; nil means that it is unknown.
	Retention *time.Duration
}

// Trouble is a reason of the API and a message.
type Trouble struct{ Reason, Message string }

// Group is a rule group that Prometheus has.
type Group struct {
	Name, File string
	// Hash is the hash that a rule of the group records, or empty. Operator
	// is the operator of that rule, empty for the rules of all operators.
	Hash     string
	Operator types.NamespacedName
	// Rules is the number of all rules, Waiting the number of rules that were not evaluated yet.
	Rules, Waiting int
	// Error is the error of the first rule that cannot be evaluated, with its name.
	Error string
}

// verdict is the content of the condition RulesLoaded.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

// checkLoaded compares files with the rules that Prometheus has. It returns True if Prometheus evaluates all rules
// without errors, Unknown if it has not evaluated all of them yet or cannot be read, and otherwise False.
func checkLoaded(in Input, files ...File) verdict {
	if t := in.Prometheus.Trouble; t != nil {
		return verdict{metav1.ConditionUnknown, t.Reason, t.Message}
	}
	rules, waiting := 0, 0
	for _, f := range files {
		groups, problem := f.findGroups(in)
		if problem != nil {
			return *problem
		}
		for _, g := range groups {
			if g.Error != "" {
				return verdict{metav1.ConditionFalse, v1alpha1.ReasonRulesFailing,
					fmt.Sprintf("Prometheus cannot evaluate a rule of group %s: %s", g.Name, g.Error)}
			}
			rules, waiting = rules+g.Rules, waiting+g.Waiting
		}
	}
	if waiting > 0 {
		return verdict{metav1.ConditionUnknown, v1alpha1.ReasonWaiting,
			"Prometheus has the rules and has not evaluated all of them yet; each group has its turn within 4 minutes"}
	}
	return verdict{metav1.ConditionTrue, v1alpha1.ReasonSucceeded,
		fmt.Sprintf("Prometheus evaluates all %d rules without error", rules)}
}

// findGroups returns the groups of a file that Prometheus has. If they are wrong, it returns a verdict instead.
func (f File) findGroups(in Input) ([]Group, *verdict) {
	object := fmt.Sprintf("%s %s/%s", in.Kind, in.Namespace, f.nameObject(in.Kind))
	isMarker := func(g Group) bool { return g.Hash != "" && g.Operator == f.Operator }
	marker := slices.IndexFunc(in.Prometheus.Groups, isMarker)
	if marker < 0 {
		return nil, &verdict{metav1.ConditionFalse, v1alpha1.ReasonRulesMissing,
			fmt.Sprintf("Prometheus does not have the rules of %s: see that it selects that object, and what its log "+
				"says of the rules", object)}
	}
	loaded := in.Prometheus.Groups[marker]
	if copyFile := f.findCopy(in, loaded.File); copyFile != "" {
		return nil, &verdict{metav1.ConditionFalse, v1alpha1.ReasonRulesOutdated,
			fmt.Sprintf("Prometheus has the rules twice, from %s and %s: they would count everything double; remove "+
				"what the hub does not write", loaded.File, copyFile)}
	}
	if loaded.Hash != f.Hash {
		return nil, &verdict{metav1.ConditionFalse, v1alpha1.ReasonRulesOutdated,
			fmt.Sprintf("Prometheus has not taken over the newest rules of %s: it has those of hash %s and not %s",
				object, loaded.Hash, f.Hash)}
	}
	var out []Group
	for _, want := range f.Groups {
		i := slices.IndexFunc(in.Prometheus.Groups, func(g Group) bool { return g.Name == want.Name })
		if i < 0 || in.Prometheus.Groups[i].Rules != len(want.Rules) {
			return nil, &verdict{metav1.ConditionFalse, v1alpha1.ReasonRulesOutdated,
				fmt.Sprintf("Prometheus has not all rules of group %s of %s", want.Name, object)}
		}
		out = append(out, in.Prometheus.Groups[i])
	}
	return out, nil
}

// findCopy returns the name of another loaded file with a group of this file, or an empty
// string. Such a file is an old object that was not deleted, or was written without the hub.
func (f File) findCopy(in Input, loadedFile string) string {
	for _, g := range in.Prometheus.Groups {
		if g.File != loadedFile && slices.ContainsFunc(f.Groups,
			func(want monitoringv1.RuleGroup) bool { return want.Name == g.Name }) {
			return g.File
		}
	}
	return ""
}

// nameObject returns the name of the object that contains the file.
func (f File) nameObject(kind Kind) string {
	if kind == KindConfigMap {
		return FileName
	}
	return f.Name
}

// isLoaded reports whether Prometheus evaluates the rules of all files without errors.
func isLoaded(in Input, files []File) bool {
	return checkLoaded(in, files...).status == metav1.ConditionTrue
}
