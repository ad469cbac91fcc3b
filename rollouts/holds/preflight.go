// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package holds

import (
	"fmt"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/rollouts"
)

// indexByCluster returns the installs by the name of their cluster.
func indexByCluster(installs []rollouts.Install) map[string]rollouts.Install {
	index := make(map[string]rollouts.Install, len(installs))
	for _, i := range installs {
		index[i.Cluster] = i
	}
	return index
}

// findPreflightHold returns the hold of a cluster on which a release cannot be installed. It returns nil if the release
// is already installed or can be installed, or if the requirements (r) are not known. If the release suits no cluster,
// the hold blocks the waves, so that a rollout that updated no cluster does not count as a success. If only this
// cluster is not suitable, the cluster is deferred.
func findPreflightHold(r *v1alpha1.ReleaseRequirements, release string, c rollouts.Cluster,
	installed string) *rollouts.Hold {
	if r == nil || installed == release {
		return nil
	}
	newHold := func(defers bool, format string, args ...any) *rollouts.Hold {
		return &rollouts.Hold{Reason: v1alpha1.ReasonPreflightFailed, Message: fmt.Sprintf(format, args...),
			Defers: defers}
	}
	if r.TooLarge != "" {
		return newHold(false, "%s", r.TooLarge)
	}
	if problem, isForAll := explainKubernetes(r, release, c.Kubernetes); problem != "" {
		return newHold(!isForAll, "%s", problem)
	}
	for _, refused := range r.RefusedUpgrades {
		if refused.From == installed {
			return newHold(true, "the API server refuses the upgrade from %s: %s", installed, refused.Reason)
		}
	}
	return nil
}

// explainKubernetes says why a release does not suit the cluster's version of Kubernetes. It returns "" if it does.
// isForAll is true if the release suits no version.
func explainKubernetes(r *v1alpha1.ReleaseRequirements, release, version string) (problem string, isForAll bool) {
	if r.MinKubeVersion == "" && r.SupportedKubernetes == nil && len(r.RemovedAPIs) == 0 {
		return "", false
	}
	// A problem for all versions does not depend on the cluster's version, which might not be known.
	clusterVersion, err := parseKubernetesVersion(version)
	if problem, isForAll = ExplainKubernetesProblem(r, release, clusterVersion); isForAll {
		return problem, true
	}
	switch {
	case err != nil:
		return fmt.Sprintf("the Kubernetes version of the cluster is not known (%q), which bundle %s depends on",
			version, release), false
	case problem != "":
		return fmt.Sprintf("the cluster has Kubernetes %s, and %s", clusterVersion, problem), false
	}
	return "", false
}

// ExplainKubernetesProblem says why a bundle does not suit a version of Kubernetes. It returns "" if the bundle's
// requirements are met. isForAll is true if the bundle suits no version.
func ExplainKubernetesProblem(r *v1alpha1.ReleaseRequirements, bundle string, version semver.Version) (problem string,
	isForAll bool) {
	// OLM parses minKubeVersion the same way.
	minimum, err := semver.Parse(strings.TrimPrefix(r.MinKubeVersion, "v"))
	switch { // an empty minKubeVersion is no requirement
	case err != nil && r.MinKubeVersion != "":
		return fmt.Sprintf("minKubeVersion %q of bundle %s is no version such as 1.30.0, so OLM installs it nowhere",
			r.MinKubeVersion, bundle), true
	case r.MinKubeVersion != "" && version.LT(minimum):
		return fmt.Sprintf("bundle %s needs %s or newer (minKubeVersion)", bundle, minimum), false
	}
	if problem := explainUnsupported(r.SupportedKubernetes, bundle, version); problem != "" {
		return problem, false
	}
	for _, removed := range r.RemovedAPIs {
		removedIn, err := semver.ParseTolerant(removed.RemovedIn)
		if err == nil && version.GTE(removedIn) {
			return fmt.Sprintf("bundle %s uses %s %s (%s), which Kubernetes %s removed", bundle, removed.APIVersion,
				removed.Kind, removed.Name, removed.RemovedIn), false
		}
	}
	return "", false
}

// explainUnsupported says that a version of Kubernetes is outside of the range that the catalog gives for a bundle. It
// returns "" if it is in the range.
func explainUnsupported(r *v1alpha1.KubernetesRange, bundle string, version semver.Version) string {
	if r == nil {
		return ""
	}
	supported := bundles.KubernetesRange{Min: r.Min, Max: r.Max}
	if supported.Contains(version.String()) {
		return ""
	}
	return fmt.Sprintf("bundle %s is supported on Kubernetes %s (%s)", bundle, supported, bundles.PropertySupport)
}

// ExplainSupportProblem says that the support of a bundle has ended. It returns "" if it is supported or if that is
// not known.
func ExplainSupportProblem(r *v1alpha1.ReleaseRequirements, bundle string, now time.Time) string {
	if r == nil || !bundles.IsSupportEnded(r.EndOfSupport, now) {
		return ""
	}
	return fmt.Sprintf("bundle %s has not been supported since %s (%s)", bundle, r.EndOfSupport,
		bundles.PropertySupport)
}

// parseKubernetesVersion parses a version without the suffix of the distribution, as OLM does:
// v1.30.2-eks-1a2b, v1.30.2+k3s1.
func parseKubernetesVersion(text string) (semver.Version, error) {
	text, _, _ = strings.Cut(text, "-")
	text, _, _ = strings.Cut(text, "+")
	return semver.ParseTolerant(text)
}

// jobGrace is how long after its timeout a Job can be without a result: the agent needs time to start it and to detect
// its end.
const jobGrace = 2 * time.Minute

// findJobHold returns the hold of a cluster on which the preflight Job has not succeeded. It returns nil if the Job has
// succeeded or none is required. A cluster on which the Job failed or was refused is deferred. A cluster whose agent
// reports no result is deferred after the timeout and jobGrace, so that other clusters do not wait without limit.
func findJobHold(required *rollouts.PreflightJob, install rollouts.Install, c rollouts.Cluster,
	now time.Time) *rollouts.Hold {
	if required == nil {
		return nil
	}
	job, isRequested := install.Jobs[required.Name]
	pending := rollouts.Hold{Reason: v1alpha1.ReasonPreflightPending, Message: "the preflight Job has not run yet"}
	failed := rollouts.Hold{Reason: v1alpha1.ReasonPreflightFailed, Defers: true}
	end := c.Extend(job.RequestedAt, job.RequestedAt.Add(required.Timeout+jobGrace))
	switch {
	case !isRequested:
		pending.NeedsJob = true
		return &pending
	case job.State == v1alpha1.JobSucceeded:
		return nil
	case job.State == v1alpha1.JobFailed:
		failed.Message = "the preflight Job failed: " + job.Message
	case job.State == v1alpha1.JobRefused:
		failed.Message = "the preflight Job was refused: " + job.Message
	case c.Clock(now).Before(end):
		pending.Until = end
		return &pending
	default:
		failed.Message = fmt.Sprintf("the agent reported no result of the preflight Job in %s",
			required.Timeout+jobGrace)
	}
	return &failed
}
