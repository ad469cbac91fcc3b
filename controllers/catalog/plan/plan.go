// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides what an OperatorCatalog's status comes to after its
// source was looked at. It is pure.
package plan

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/controllers/kit/conditions"
)

// The API's bounds on the summary in the status.
const (
	MaxPackages = 500
	MaxChannels = 64
)

// Failure is what is wrong with a source: one of the catalog reasons of the
// API, and the cause.
type Failure struct {
	Reason string
	Cause  string
}

// Input is what was observed of a catalog's source.
type Input struct {
	Now     time.Time
	Catalog *v1alpha1.OperatorCatalog
	// Digest that the source has now; empty where that is not known.
	Digest string
	// Summary of that digest; nil where it was not read because it is in use
	// already.
	Summary *catalogs.Summary
	// Failure, where the source could not be resolved or read.
	Failure *Failure
}

// Decision is the status, and when to look at the source again; zero: not until
// the spec changes.
type Decision struct {
	Status       v1alpha1.OperatorCatalogStatus
	RecheckAfter time.Duration
}

// NeedsRead tells whether a digest is another one than that in use, or comes
// from another source.
func NeedsRead(c *v1alpha1.OperatorCatalog, digest string) bool {
	return digest != c.Status.Digest || c.Status.Source == nil || *c.Status.Source != c.Spec.Source
}

// Next decides. A digest that cannot be read or that contradicts itself never
// takes the place of a good one.
func Next(in Input) Decision {
	d := Decision{Status: *in.Catalog.Status.DeepCopy(), RecheckAfter: recheck(in)}
	failure := in.Failure
	if failure == nil && in.Summary != nil {
		failure = problems(*in.Summary)
	}
	if failure != nil {
		conditions.Summarize(&d.Status.Conditions, in.Catalog.Generation, conditions.Summary{
			State: conditions.Stalled, Reason: failure.Reason, Message: explain(*failure, in),
		})
		return d
	}
	if in.Summary != nil {
		adopt(in, &d.Status)
	}
	conditions.Summarize(&d.Status.Conditions, in.Catalog.Generation, conditions.Summary{
		State: conditions.Current, Reason: v1alpha1.ReasonSucceeded,
		Message: fmt.Sprintf("%d packages at %s", d.Status.PackageCount, d.Status.Digest),
	})
	return d
}

func adopt(in Input, status *v1alpha1.OperatorCatalogStatus) {
	source := in.Catalog.Spec.Source
	status.Digest, status.Source = in.Digest, &source
	status.LastReadTime = &metav1.Time{Time: in.Now.Truncate(time.Second)}
	status.PackageCount = int32(len(in.Summary.Packages))
	status.Packages = nil
	for _, p := range in.Summary.Packages[:min(len(in.Summary.Packages), MaxPackages)] {
		status.Packages = append(status.Packages, sumUp(p))
	}
}

func sumUp(p catalogs.PackageSummary) v1alpha1.CatalogPackage {
	out := v1alpha1.CatalogPackage{Name: p.Name, DefaultChannel: p.DefaultChannel}
	for _, c := range p.Channels[:min(len(p.Channels), MaxChannels)] {
		out.Channels = append(out.Channels, v1alpha1.CatalogChannel{
			Name: c.Name, Head: c.HeadVersion, Versions: int32(c.Versions),
		})
	}
	return out
}

// maxNamed keeps messages short enough to read.
const maxNamed = 3

func problems(s catalogs.Summary) *Failure {
	if len(s.Packages) == 0 {
		return &Failure{Reason: v1alpha1.ReasonNotACatalog, Cause: "it holds no package"}
	}
	var bad []string
	for _, p := range s.Packages {
		if p.Problem != "" {
			bad = append(bad, fmt.Sprintf("package %s: %s", p.Name, p.Problem))
		}
	}
	if len(bad) == 0 {
		return nil
	}
	if more := len(bad) - maxNamed; more > 0 {
		bad = append(bad[:maxNamed], fmt.Sprintf("and %d more packages", more))
	}
	return &Failure{Reason: v1alpha1.ReasonCatalogInvalid, Cause: strings.Join(bad, "; ")}
}

// advice says what to do about each reason.
var advice = map[string]string{
	v1alpha1.ReasonCatalogUnreachable: "check the reference, the registry and the hub's way to it; it is tried again by itself",
	v1alpha1.ReasonDigestMismatch:     "the content is not what the digest names: push the catalog again, or correct the digest in spec.source",
	v1alpha1.ReasonNotACatalog:        "point spec.source at a file-based catalog, such as one pushed with `bellwether catalog push`",
	v1alpha1.ReasonCatalogInvalid:     "correct the catalog and publish it again",
	v1alpha1.ReasonInvalidSpec:        "correct spec.source",
}

func explain(f Failure, in Input) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s; %s", describe(in.Catalog.Spec.Source), f.Cause, advice[f.Reason])
	if in.Catalog.Status.Digest != "" {
		fmt.Fprintf(&text, ". The catalog read before stays in use (%s)", in.Catalog.Status.Digest)
	}
	return text.String()
}

func describe(s v1alpha1.CatalogSource) string {
	if s.Directory != "" {
		return "directory " + s.Directory
	}
	return "image " + s.Image
}

const defaultPoll = time.Minute

func recheck(in Input) time.Duration {
	poll := defaultPoll
	if p := in.Catalog.Spec.PollInterval; p != nil {
		poll = p.Duration
	}
	if in.Failure == nil && strings.Contains(in.Catalog.Spec.Source.Image, "@sha256:") {
		return 0 // what a digest names never changes
	}
	return poll
}
