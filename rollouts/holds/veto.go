// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package holds

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
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
	// maxReport is the maximum length of an agent's report.
	maxReport = 8 << 10
)

// ParseVeto parses the data of the ConfigMap with which a cluster's owner refuses changes. The veto is in force while
// the ConfigMap exists, even if its data cannot be parsed, because unreadable data must not permit a change.
func ParseVeto(data map[string]string) v1alpha1.ClusterVeto {
	v := v1alpha1.ClusterVeto{Reason: data[keyReason]}
	if text := strings.TrimSpace(data[keyUntil]); text != "" {
		if until, err := time.Parse(time.RFC3339, text); err == nil {
			v.Until = &metav1.Time{Time: until.UTC()}
		} else {
			v.Reason = fmt.Sprintf("%s (the key until is no RFC 3339 time: %s)", v.Reason, phrase.Truncate(text, 32))
		}
	}
	v.Operators = strings.Fields(strings.ReplaceAll(data[keyOperators], ",", " "))
	return limitVeto(v)
}

// limitVeto returns a veto within the API's limits, without Since. If the veto has too many operators or one with a
// name that is too long, it covers all operators. A veto without a reason gets a text that says so.
func limitVeto(v v1alpha1.ClusterVeto) v1alpha1.ClusterVeto {
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

// ReadOnlyVeto returns the veto of an agent that may only read its cluster.
func ReadOnlyVeto() *v1alpha1.ClusterVeto {
	return &v1alpha1.ClusterVeto{ReadOnly: true, Reason: "the agent was installed to read only (agent.readOnly)"}
}

// EncodeVeto returns the veto in the format of the agent's report. It returns "" if there is no veto.
func EncodeVeto(v *v1alpha1.ClusterVeto) string {
	if v == nil {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil { // plain data always marshals
		panic(fmt.Sprintf("marshal veto: %v", err))
	}
	return string(text)
}

// DecodeVeto parses a report. It returns nil if there is no veto. A report that cannot be parsed is a veto for
// all operators.
func DecodeVeto(text string) *v1alpha1.ClusterVeto {
	if text == "" {
		return nil
	}
	var v v1alpha1.ClusterVeto
	if len(text) > maxReport || json.Unmarshal([]byte(text), &v) != nil {
		v = v1alpha1.ClusterVeto{Reason: "the agent's report of the veto cannot be read"}
	}
	v = limitVeto(v)
	return &v
}

// VetoCovers reports whether the veto covers an operator. A veto lists operators as "namespace/name" or "name".
func VetoCovers(v *v1alpha1.ClusterVeto, operator v1alpha1.OperatorReference) bool {
	return v != nil && (len(v.Operators) == 0 || slices.Contains(v.Operators, operator.Name) ||
		slices.Contains(v.Operators, operator.Namespace+"/"+operator.Name))
}

// VetoMessage says that the cluster's owner refuses changes, why, and when the owner plans to end the veto. The veto
// does not end by itself at that time. For an agent that may only read, the message says that instead.
func VetoMessage(v *v1alpha1.ClusterVeto) string {
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
