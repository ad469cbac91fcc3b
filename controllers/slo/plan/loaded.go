// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Prometheus is what it says of its rules.
type Prometheus struct {
	// Trouble is why nothing is known of them.
	Trouble *Trouble
	Groups  []Group
	// Retention is after how long it deletes samples, 0 if there is no limit; nil if
	// that is not known.
	Retention *time.Duration
}

// Trouble is a reason of the API and a message.
type Trouble struct{ Reason, Message string }

// Group is a rule group that Prometheus has.
type Group struct {
	Name, File string
	// Hash is the one that a rule of the group records, if there is one; Operator
	// is that rule's, empty for the rules of all operators.
	Hash     string
	Operator types.NamespacedName
	// Rules counts all, Waiting those that were not evaluated yet, but for groups that are
	// evaluated once an hour.
	Rules, Waiting int
	// Error is that of the first rule that cannot be evaluated, with its name.
	Error string
}

// verdict is the condition RulesLoaded.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

// loaded compares files with what Prometheus has.
func loaded(in Input, files ...File) verdict {
	if t := in.Prometheus.Trouble; t != nil {
		return verdict{metav1.ConditionUnknown, t.Reason, t.Message}
	}
	rules, waiting := 0, 0
	for _, f := range files {
		groups, bad := f.find(in)
		if bad != nil {
			return *bad
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
			"Prometheus has the rules and has not evaluated all of them yet; groups of alerts have their turn " +
				"within 4 minutes"}
	}
	return verdict{metav1.ConditionTrue, v1alpha1.ReasonSucceeded,
		fmt.Sprintf("Prometheus evaluates all %d rules without error", rules)}
}

// find returns the groups of a file, or what is wrong with them.
func (f File) find(in Input) ([]Group, *verdict) {
	where := fmt.Sprintf("%s %s/%s", in.Kind, in.Namespace, f.object(in.Kind))
	isMarker := func(g Group) bool { return g.Hash != "" && g.Operator == f.Operator }
	marker := slices.IndexFunc(in.Prometheus.Groups, isMarker)
	if marker < 0 {
		return nil, &verdict{metav1.ConditionFalse, v1alpha1.ReasonRulesMissing,
			fmt.Sprintf("Prometheus does not have the rules of %s: see that it selects that object, and what its log "+
				"says of the rules", where)}
	}
	have := in.Prometheus.Groups[marker]
	if other := f.copyOf(in, have.File); other != "" {
		return nil, &verdict{metav1.ConditionFalse, v1alpha1.ReasonRulesOutdated,
			fmt.Sprintf("Prometheus has the rules twice, from %s and %s: they would count everything double; remove "+
				"what the hub does not write", have.File, other)}
	}
	if have.Hash != f.Hash {
		return nil, &verdict{metav1.ConditionFalse, v1alpha1.ReasonRulesOutdated,
			fmt.Sprintf("Prometheus has not taken over the newest rules of %s: it has those of hash %s and not %s",
				where, have.Hash, f.Hash)}
	}
	var out []Group
	for _, want := range f.Groups {
		i := slices.IndexFunc(in.Prometheus.Groups, func(g Group) bool { return g.Name == want.Name })
		if i < 0 || in.Prometheus.Groups[i].Rules != len(want.Rules) {
			return nil, &verdict{metav1.ConditionFalse, v1alpha1.ReasonRulesOutdated,
				fmt.Sprintf("Prometheus has not all rules of group %s of %s", want.Name, where)}
		}
		out = append(out, in.Prometheus.Groups[i])
	}
	return out, nil
}

// copyOf finds a group of the file in another one: an older object that was left
// behind, or a file that was written without the hub.
func (f File) copyOf(in Input, loaded string) string {
	for _, g := range in.Prometheus.Groups {
		if g.File != loaded && slices.ContainsFunc(f.Groups,
			func(want monitoringv1.RuleGroup) bool { return want.Name == g.Name }) {
			return g.File
		}
	}
	return ""
}

// object is the name of the object that holds the file.
func (f File) object(kind Kind) string {
	if kind == KindConfigMap {
		return FileName
	}
	return f.Name
}

func allLoaded(in Input, files []File) bool {
	return loaded(in, files...).status == metav1.ConditionTrue
}
