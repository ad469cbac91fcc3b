// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pin decides the status of an OperatorCatalog after its source was read: whether a new digest replaces the
// digest in use, which versions clusters run, and which of these versions are blocked. It is pure.
package pin

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/remedy"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/internal/phrase"
)

// The API's limits of the summary in the status.
const (
	MaxPackages = 500
	MaxChannels = 64
)

// Failure is a problem with a source: a catalog reason of the API, and the cause.
type Failure struct {
	Reason string
	Cause  string
}

// Input is the observed state of a catalog's source and its users.
type Input struct {
	Now     time.Time
	Catalog *v1alpha1.OperatorCatalog
	// Digest is the present digest of the source; empty if it is unknown.
	Digest string
	// Summary is the summary of that digest; nil if it was not read because the digest is already in use.
	Summary *catalogs.Summary
	// Failure is why the source could not be resolved or read; nil if it could.
	Failure *Failure
	// Users are the ManagedOperators that use the catalog, in any order.
	Users []User
	// InUse are the users' packages in the digest in use, and Candidate the packages in Digest if that is another
	// digest. Packages that could not be read or do not exist are missing.
	InUse, Candidate map[string]*catalogs.Package
}

// User is a ManagedOperator that uses a package of the catalog.
type User struct {
	Package string
	// Channel is empty for the package's default channel.
	Channel  string
	Installs []Install
}

// Install is the bundle that one cluster runs.
type Install struct {
	Cluster   string
	Installed catalogs.Installed
}

// Event is a Kubernetes Event to emit on the catalog.
type Event struct {
	Reason  string
	Message string
}

// Decision is the new status, the events to emit, and when to read the source again; zero means not before
// something changes.
type Decision struct {
	Status       v1alpha1.OperatorCatalogStatus
	Events       []Event
	RecheckAfter time.Duration
}

// NeedsRead reports whether a digest is not in use, or is in use from another source.
func NeedsRead(c *v1alpha1.OperatorCatalog, digest string) bool {
	return digest != c.Status.Digest || c.Status.Source == nil || *c.Status.Source != c.Spec.Source
}

// Decide returns the new status. A digest that cannot be read, is invalid or would strand a cluster never replaces a
// good digest: the status keeps the digest in use, and its condition has the failure.
func Decide(in Input) Decision {
	d := Decision{Status: *in.Catalog.Status.DeepCopy(), RecheckAfter: computeRecheckAfter(in)}
	failure := in.Failure
	// A digest that is already in use has no summary, and is not checked again.
	if failure == nil && in.Summary != nil {
		failure = checkPackages(*in.Summary)
	}
	if failure == nil && in.Summary != nil {
		failure = checkStranding(in)
	}
	packages := in.InUse
	if failure == nil && in.Summary != nil {
		adoptDigest(in, &d.Status)
		packages = in.Candidate
	}
	d.recordUsage(in, packages)
	if failure != nil {
		conditions.Summarize(&d.Status.Conditions, in.Catalog.Generation, conditions.Summary{
			State: conditions.Stalled, Reason: failure.Reason, Message: formatStalledMessage(*failure, in),
		})
		return d
	}
	conditions.Summarize(&d.Status.Conditions, in.Catalog.Generation, conditions.Summary{
		State: conditions.Current, Reason: v1alpha1.ReasonSucceeded, Message: formatReadyMessage(in, d.Status),
	})
	return d
}

// formatReadyMessage returns the message of a good catalog. It lists blocks that have expired, because they need a
// review.
func formatReadyMessage(in Input, status v1alpha1.OperatorCatalogStatus) string {
	text := fmt.Sprintf("%d packages at %s", status.PackageCount, status.Digest)
	if in.Catalog.Spec.Verification != nil {
		text += ", signed by a trusted key"
	}
	var expired []string
	for _, b := range status.BlockedVersions {
		if b.Expired {
			expired = append(expired, fmt.Sprintf("%s %s (%s)", b.Package, b.Version, b.Expires))
		}
	}
	if len(expired) > 0 {
		text += "; blocks that have expired and stay in force: " + phrase.First(expired, maxNamed) +
			": extend or remove them in spec.blocks"
	}
	return text
}

// adoptDigest sets the new digest as the digest in use, with its source, read time and packages.
func adoptDigest(in Input, status *v1alpha1.OperatorCatalogStatus) {
	source := in.Catalog.Spec.Source
	status.Digest, status.Source = in.Digest, &source
	status.LastReadTime = &metav1.Time{Time: in.Now.Truncate(time.Second)}
	status.PackageCount = int32(len(in.Summary.Packages))
	status.Packages = nil
	for _, p := range in.Summary.Packages[:min(len(in.Summary.Packages), MaxPackages)] {
		status.Packages = append(status.Packages, summarizePackage(p))
	}
}

func summarizePackage(p catalogs.PackageSummary) v1alpha1.CatalogPackage {
	out := v1alpha1.CatalogPackage{Name: p.Name, DefaultChannel: p.DefaultChannel}
	for _, c := range p.Channels[:min(len(p.Channels), MaxChannels)] {
		out.Channels = append(out.Channels, v1alpha1.CatalogChannel{
			Name: c.Name, Head: c.HeadVersion, Versions: int32(c.Versions),
		})
	}
	return out
}

// maxNamed bounds the names in a message.
const maxNamed = 3

// checkPackages returns a failure if the catalog has no packages or an invalid package; nil if it is good.
func checkPackages(s catalogs.Summary) *Failure {
	if len(s.Packages) == 0 {
		return &Failure{Reason: v1alpha1.ReasonNotACatalog, Cause: "the catalog has no packages"}
	}
	var problems []string
	for _, p := range s.Packages {
		if p.Problem != "" {
			problems = append(problems, fmt.Sprintf("package %s: %s", p.Name, p.Problem))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return &Failure{Reason: v1alpha1.ReasonCatalogInvalid, Cause: strings.Join(phrase.Limit(problems, maxNamed), "; ")}
}

func formatStalledMessage(f Failure, in Input) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s. %s", describeSource(in.Catalog.Spec.Source), strings.TrimSuffix(f.Cause, "."),
		remedy.Advice(f.Reason, remedy.Hub, remedy.Names{Catalog: in.Catalog.Name}))
	if in.Catalog.Status.Digest != "" {
		fmt.Fprintf(&text, " The previous catalog stays in use (%s).", in.Catalog.Status.Digest)
	}
	return text.String()
}

func describeSource(s v1alpha1.CatalogSource) string {
	if s.Directory != "" {
		return "directory " + s.Directory
	}
	return "image " + s.Image
}

const defaultPoll = time.Minute

// computeRecheckAfter returns the time until the next poll or the next expiry of a block; zero means never.
func computeRecheckAfter(in Input) time.Duration {
	poll := defaultPoll
	if p := in.Catalog.Spec.PollInterval; p != nil {
		poll = p.Duration
	}
	if in.Failure == nil && strings.Contains(in.Catalog.Spec.Source.Image, "@sha256:") {
		poll = 0 // the content of a digest never changes
	}
	for _, b := range in.Catalog.Spec.Blocks {
		if remaining := parseExpiry(b).Sub(in.Now); remaining > 0 && (poll == 0 || remaining < poll) {
			poll = remaining
		}
	}
	return poll
}
