// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/phrase"
)

// Verdict is what the newest run of a probe came to.
type Verdict struct {
	// At is when the run ended; the zero value is a probe that never ran.
	At time.Time
	// URL that was asked; empty where the target led nowhere.
	URL string
	// Failure is nil after a success.
	Failure *Failure
}

// Alike tells whether two verdicts say the same about the endpoint, whenever
// they were reached: only a change is written to the object.
func (v Verdict) Alike(other Verdict) bool {
	return v.At.IsZero() == other.At.IsZero() && v.URL == other.URL && v.reason() == other.reason()
}

func (v Verdict) reason() string {
	if v.Failure == nil {
		return ""
	}
	return v.Failure.Reason
}

// Input is all that a status follows from.
type Input struct {
	Probe *v1alpha1.EndpointProbe
	// Refused is why the probe is not run, if it is not.
	Refused *Failure
	Verdict Verdict
}

// RetryRefused is when a probe that is not run is looked at again: the one that
// it is a duplicate of may be gone.
const RetryRefused = 10 * time.Second

// OnHub refuses, on the hub, what is not in the namespace of a cluster, and what
// names an object: those are on the cluster.
func OnHub(probe *v1alpha1.EndpointProbe, cluster string) *Failure {
	switch {
	case cluster == "":
		return &Failure{Reason: v1alpha1.ReasonInvalidSpec, Message: fmt.Sprintf(
			"on the hub an EndpointProbe must be in the namespace of a cluster (bellwether-CLUSTER), and %s is none",
			probe.Namespace)}
	case probe.Spec.Target.URL == "":
		return &Failure{Reason: v1alpha1.ReasonInvalidSpec,
			Message: "on the hub spec.target must be a url: other targets are on the cluster"}
	}
	return nil
}

// Status of an EndpointProbe: Ready while it is run, Success while it succeeds.
func Status(in Input) v1alpha1.EndpointProbeStatus {
	status := *in.Probe.Status.DeepCopy()
	generation := in.Probe.Generation
	if in.Refused != nil {
		conditions.Summarize(&status.Conditions, generation, conditions.Summary{
			State: conditions.Stalled, Reason: in.Refused.Reason, Message: in.Refused.Message,
		})
		unknown(&status, generation, in.Refused.Reason, "the probe is not run")
		return status
	}
	conditions.Summarize(&status.Conditions, generation, conditions.Summary{
		State: conditions.Current, Reason: v1alpha1.ReasonSucceeded, Message: "the probe is run",
	})
	switch {
	case in.Verdict.At.IsZero():
		unknown(&status, generation, v1alpha1.ReasonWaiting, "the probe's turn comes within its interval")
	case in.Verdict.Failure == nil:
		conditions.Set(&status.Conditions, generation, v1alpha1.ConditionSuccess, true, v1alpha1.ReasonSucceeded,
			"the endpoint answers as it should")
		status.URL = in.Verdict.URL
	default:
		fail(&status, generation, in.Verdict)
	}
	return status
}

// fail keeps the URL that was asked last where the target leads nowhere now, and
// the time of a failure that is told already: a status is written on changes.
func fail(status *v1alpha1.EndpointProbeStatus, generation int64, v Verdict) {
	was := conditions.Get(status.Conditions, v1alpha1.ConditionSuccess)
	if v.URL != "" {
		status.URL = v.URL
	}
	if was.Status == metav1.ConditionFalse && was.Reason == v.Failure.Reason && was.ObservedGeneration == generation {
		return
	}
	conditions.Set(&status.Conditions, generation, v1alpha1.ConditionSuccess, false, v.Failure.Reason,
		v.Failure.Message)
	status.LastFailure = &v1alpha1.ProbeFailure{Time: metav1.NewTime(v.At), Reason: v.Failure.Reason,
		Message: phrase.Truncate(v.Failure.Message, maxMessage)}
}

func unknown(status *v1alpha1.EndpointProbeStatus, generation int64, reason, message string) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionSuccess, Status: metav1.ConditionUnknown, ObservedGeneration: generation,
		Reason: reason, Message: message,
	})
}

const maxMessage = 1024
