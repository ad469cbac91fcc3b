// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// ObjectivesInput has the data for the explanation of an operator's objectives.
type ObjectivesInput struct {
	Now time.Time
	// SLO can be nil. Then only the budgets are known.
	SLO *v1alpha1.OperatorSLO
	// SLOErr is why the OperatorSLO could not be read.
	SLOErr error
	// Operator is the operator of the budgets.
	Operator v1alpha1.OperatorReference
	// Budgets are the error budgets from Prometheus. BudgetsErr is why they could not be read.
	Budgets    []Budget
	BudgetsErr error
	Program    string
}

// Objectives explains an OperatorSLO and its error budgets. It does not return the command that the user has just run
// as a remedy.
func Objectives(in ObjectivesInput) Explanation {
	names := remedy.Names{Operator: in.Operator.Name, HubNamespace: in.Operator.Namespace, Program: in.Program}
	var chain []Link
	if in.SLO != nil {
		chain = append(chain, buildSLOLink(in.SLO))
	}
	if in.SLOErr != nil {
		chain = append(chain, Link{Text: "the OperatorSLO could not be read from the hub: " +
			trimPeriod(in.SLOErr.Error())})
	}
	if in.BudgetsErr != nil {
		text := "the error budgets could not be read: " + trimPeriod(in.BudgetsErr.Error())
		chain = append(chain, Link{State: Unknown, Reason: remedy.NoData, Text: text,
			stale: []Stale{{What: "the error budgets", Why: text}}})
	}
	// Budgets without data have their own links, at the end of the chain.
	isUnknown := func(b Budget) bool { return b.Left == nil }
	chain = append(chain, listBudgetLinks(slices.DeleteFunc(slices.Clone(in.Budgets), isUnknown))...)
	names.Cluster = findSpentCluster(in.Budgets)
	for _, b := range in.Budgets {
		if isUnknown(b) {
			chain = append(chain, buildNoDataLink(b))
		}
	}
	e := conclude(Subject{Kind: "OperatorSLO", Namespace: in.Operator.Namespace, Name: in.Operator.Name}, chain, names,
		fmt.Sprintf("Every one of %d error budgets has something left, and no alert fires.", len(in.Budgets)))
	e.Budgets = in.Budgets
	e.Remedies = slices.DeleteFunc(e.Remedies, func(a remedy.Action) bool { // the command that the user has just run
		return strings.Contains(a.Command, " slo get ")
	})
	return e
}

// buildNoDataLink describes a budget without data, and the alerts that fire because of that.
func buildNoDataLink(b Budget) Link {
	text := "there is no data for the error budget of " + b.SLI + formatOnCluster(b.Cluster)
	if len(b.Firing) > 0 {
		text += fmt.Sprintf("; %s: %s", phrase.Count(len(b.Firing), "firing alert"), strings.Join(b.Firing, ", "))
	}
	return Link{State: Unknown, Reason: remedy.NoData, about: aboutSymptom, Text: text}
}

// findSpentCluster returns the first cluster with a spent budget or a firing alert.
func findSpentCluster(budgets []Budget) string {
	for _, b := range budgets {
		isSpent := b.Left != nil && *b.Left <= 0
		if isSpent || len(b.Firing) > 0 {
			return b.Cluster
		}
	}
	return ""
}

// buildSLOLink says whether the objectives are in force. It has a link for each other condition, which is at least
// Degraded if the condition is not True.
func buildSLOLink(s *v1alpha1.OperatorSLO) Link {
	r := objectStatus{object: "OperatorSLO " + s.Namespace + "/" + s.Name, generation: s.Generation,
		observed: s.Status.ObservedGeneration, conditions: s.Status.Conditions}
	l := r.summarize("the objectives are in force", "the objectives are in force")
	for _, c := range s.Status.Conditions {
		switch c.Type {
		case v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled,
			v1alpha1.ConditionReconcileFailing: // in the summary
			continue
		}
		if c.Status == metav1.ConditionTrue {
			l.Links = append(l.Links, Link{State: Healthy, Text: c.Type, Check: c.Type, Evidence: r.buildEvidence(c)})
			continue
		}
		below := r.buildLink(c, selectWorse(classifyReason(c.Reason), Degraded))
		below.Text = c.Type + ": " + below.Text
		l.Links = append(l.Links, below)
	}
	return l
}
