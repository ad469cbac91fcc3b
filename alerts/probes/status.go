// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// Verdict is the result of the newest run of a probe.
type Verdict struct {
	// At is when the run ended. It is zero if the probe has not run yet.
	At time.Time
	// URL is the probed URL. It is empty if the target could not be resolved.
	URL string
	// Failure is nil after a success.
	Failure *Failure
}

// HasSameOutcome reports whether two verdicts have the same result, regardless
// of their times. The object is written only if the result changes.
func (v Verdict) HasSameOutcome(other Verdict) bool {
	return v.At.IsZero() == other.At.IsZero() && v.URL == other.URL && v.cause() == other.cause()
}

// cause returns the failure without parts that differ between requests, such as ports and durations.
// If no request was made, the message is kept, because one reason then has several causes.
func (v Verdict) cause() Failure {
	switch {
	case v.Failure == nil:
		return Failure{}
	case v.URL == "":
		return *v.Failure
	}
	return Failure{Reason: v.Failure.Reason}
}

// Input contains all data that the status depends on.
type Input struct {
	Probe *v1alpha1.EndpointProbe
	// Refused is the reason why the probe is not run. It is nil if the probe is run.
	Refused *Failure
	// Selected is set for a target with a selector.
	Selected *Selected
	// Verdicts are the verdicts of the targets by name. If the target has no selector, its name is empty.
	Verdicts map[string]Verdict
}

// RetryRefused is when a probe that is not run is checked again: its duplicate may have been deleted.
const RetryRefused = 10 * time.Second

// CheckOnHub returns a failure if the hub cannot run a probe: it is not in the namespace of a
// cluster, or its target is an object, which only the cluster has, or it uses Secrets or ConfigMaps.
func CheckOnHub(probe *v1alpha1.EndpointProbe, cluster string) *Failure {
	switch {
	case cluster == "":
		return &Failure{Reason: v1alpha1.ReasonInvalidSpec, Message: fmt.Sprintf(
			"on the hub an EndpointProbe must be in the namespace of a cluster (bellwether-CLUSTER), and %s is not one",
			probe.Namespace)}
	case probe.Spec.Target.URL == "":
		return &Failure{Reason: v1alpha1.ReasonInvalidSpec,
			Message: "on the hub spec.target must be a url, because the other targets are objects on the cluster"}
	case len(SecretNames(probe.Spec))+len(ConfigMapNames(probe.Spec)) > 0:
		return &Failure{Reason: v1alpha1.ReasonInvalidSpec,
			Message: "on the hub a probe cannot use Secrets and ConfigMaps, because " +
				"the namespace of a cluster holds the credentials of its agent"}
	}
	return nil
}

// Status returns the status of an EndpointProbe. Ready is true while the probe is run, Success while it succeeds.
func Status(in Input) v1alpha1.EndpointProbeStatus {
	status := *in.Probe.Status.DeepCopy()
	generation := in.Probe.Generation
	if in.Refused != nil {
		conditions.Summarize(&status.Conditions, generation, conditions.Summary{
			State: conditions.Stalled, Reason: in.Refused.Reason, Message: in.Refused.Message,
		})
		setUnknown(&status, generation, in.Refused.Reason, "the probe is not run")
		status.Selected = nil
		return status
	}
	if in.Selected != nil {
		setSelected(&status, generation, *in.Selected, in.Verdicts)
		return status
	}
	status.Selected = nil
	conditions.Summarize(&status.Conditions, generation, conditions.Summary{
		State: conditions.Current, Reason: v1alpha1.ReasonSucceeded, Message: "the probe is run",
	})
	switch verdict := in.Verdicts[""]; {
	case verdict.At.IsZero():
		setWaiting(&status, generation)
	case verdict.Failure == nil:
		conditions.Set(&status.Conditions, generation, v1alpha1.ConditionSuccess, true, v1alpha1.ReasonSucceeded,
			"the endpoint answers as expected")
		status.URL = verdict.URL
	default:
		setFailed(&status, generation, verdict)
	}
	return status
}

func setWaiting(status *v1alpha1.EndpointProbeStatus, generation int64) {
	setUnknown(status, generation, v1alpha1.ReasonWaiting, "the probe has not run yet; it runs once per interval")
}

// setFailed reports a failed run. It keeps the URL of the previous run if the target cannot be resolved
// now, and the time of a failure that is already reported, so that the status is written only on changes.
func setFailed(status *v1alpha1.EndpointProbeStatus, generation int64, v Verdict) {
	previous := conditions.Get(status.Conditions, v1alpha1.ConditionSuccess)
	if v.URL != "" {
		status.URL = v.URL
	}
	reported := Verdict{URL: v.URL, Failure: &Failure{Reason: previous.Reason, Message: previous.Message}}
	if previous.Status == metav1.ConditionFalse && reported.cause() == v.cause() &&
		previous.ObservedGeneration == generation {
		return
	}
	conditions.Set(&status.Conditions, generation, v1alpha1.ConditionSuccess, false, v.Failure.Reason,
		v.Failure.Message)
	status.LastFailure = &v1alpha1.ProbeFailure{Time: metav1.NewTime(v.At), Reason: v.Failure.Reason,
		Message: phrase.Truncate(v.Failure.Message, maxMessage)}
}

// setUnknown sets the condition Success to Unknown.
func setUnknown(status *v1alpha1.EndpointProbeStatus, generation int64, reason, message string) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionSuccess, Status: metav1.ConditionUnknown, ObservedGeneration: generation,
		Reason: reason, Message: message,
	})
}

const maxMessage = 1024
