// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package veto reads the ConfigMap by which the owner of a fleet cluster refuses
// changes there, and what the agent reports of it. It is pure. Both are input that
// is not trusted: what is kept of them is bounded.
package veto

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// Keys of the ConfigMap.
const (
	keyReason    = "reason"
	keyUntil     = "until"
	keyOperators = "operators"
)

// The API's limits.
const (
	maxReason    = 256
	maxOperators = 20
	maxOperator  = 127
	// maxReport bounds what is read of an agent's report.
	maxReport = 8 << 10
)

// Parse reads the ConfigMap's data. The veto is in force while the ConfigMap is
// there, whatever it says: a word that cannot be read must not admit a change.
func Parse(data map[string]string) v1alpha1.ClusterVeto {
	v := v1alpha1.ClusterVeto{Reason: data[keyReason]}
	if text := strings.TrimSpace(data[keyUntil]); text != "" {
		if until, err := time.Parse(time.RFC3339, text); err == nil {
			v.Until = &metav1.Time{Time: until.UTC()}
		} else {
			v.Reason = fmt.Sprintf("%s (the key until is no RFC 3339 time: %s)", v.Reason, phrase.Truncate(text, 32))
		}
	}
	v.Operators = strings.Fields(strings.ReplaceAll(data[keyOperators], ",", " "))
	return bounded(v)
}

// bounded cuts a veto to the API's limits. Where it names more operators than are
// kept it is about all operators.
func bounded(v v1alpha1.ClusterVeto) v1alpha1.ClusterVeto {
	v.Since = metav1.Time{}
	if v.Reason = phrase.Truncate(phrase.OneLine(v.Reason), maxReason); v.Reason == "" {
		v.Reason = "no reason given"
	}
	isLong := func(name string) bool { return len(name) > maxOperator }
	if len(v.Operators) == 0 || len(v.Operators) > maxOperators || slices.ContainsFunc(v.Operators, isLong) {
		v.Operators = nil
	}
	return v
}

// ReadOnly is the veto of an agent that may only read its cluster.
func ReadOnly() *v1alpha1.ClusterVeto {
	return &v1alpha1.ClusterVeto{ReadOnly: true, Reason: "the agent was installed to read only (agent.readOnly)"}
}

// Encode is the veto as the agent reports it; empty where there is none.
func Encode(v *v1alpha1.ClusterVeto) string {
	if v == nil {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil { // plain data always marshals
		panic(fmt.Sprintf("marshal veto: %v", err))
	}
	return string(text)
}

// Decode reads a report; nil where there is no veto. A report that cannot be read is
// a veto about all operators.
func Decode(text string) *v1alpha1.ClusterVeto {
	if text == "" {
		return nil
	}
	var v v1alpha1.ClusterVeto
	if len(text) > maxReport || json.Unmarshal([]byte(text), &v) != nil {
		v = v1alpha1.ClusterVeto{Reason: "the agent's report of the veto cannot be read"}
	}
	v = bounded(v)
	return &v
}

// Covers tells whether the veto is about an operator, which it names as
// "namespace/name" or "name".
func Covers(v *v1alpha1.ClusterVeto, operator v1alpha1.OperatorReference) bool {
	return v != nil && (len(v.Operators) == 0 || slices.Contains(v.Operators, operator.Name) ||
		slices.Contains(v.Operators, operator.Namespace+"/"+operator.Name))
}

// Message says that the cluster's owner refuses changes, why, and when the owner means to end that. Time alone does
// not end it. Where the agent may only read, it says that instead.
func Message(v *v1alpha1.ClusterVeto) string {
	if v.ReadOnly {
		return "the agent may only read the cluster, and manages nothing there; join the cluster again with " +
			"--read-only=false to let it manage operators"
	}
	text := "the owner of the cluster refuses changes: " + v.Reason
	if v.Until != nil {
		text += "; the owner means to end that at " + phrase.Time(v.Until.Time)
	}
	return text + "; delete ConfigMap " + v1alpha1.VetoConfigMap + " beside the agent to allow them"
}
