// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/agree"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/sbom"
	"github.com/bellwether-dev/bellwether/catalogs/sign"
)

// Verdict is the result of a check.
type Verdict string

// Verdicts, the worst last. Skipped means that the check was not requested, or that an earlier check failed.
const (
	Passed  Verdict = "passed"
	Skipped Verdict = "skipped"
	Warning Verdict = "warning"
	Failed  Verdict = "failed"
)

// Check is the result of one check.
type Check struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	// Text describes the result in one line.
	Text string `json:"text"`
	// Details has one line for each problem.
	Details []string `json:"details,omitempty"`
}

// Report has the results of a verification, in the order of the checks: signature, catalog, sbom, bundles, upgrades.
type Report struct {
	Ref    string  `json:"ref"`
	Digest string  `json:"digest"`
	Checks []Check `json:"checks"`
}

// OK reports whether no check failed.
func (r Report) OK() bool {
	return !slices.ContainsFunc(r.Checks, func(c Check) bool { return c.Verdict == Failed })
}

// VerifyInput defines what is verified.
type VerifyInput struct {
	// Source is the published catalog. If its Verification has keys, a signature by one of them is required.
	Source oci.Source
	// SkipBundleCheck does not check whether the registries have the catalog's bundles.
	SkipBundleCheck bool
	// Deep reads every layer of every bundle and compares it with its digest, instead of comparing only its size.
	Deep bool
	// Report is called after each bundle and each package that was checked, from several goroutines but never
	// concurrently. plural is "bundles" or "packages". It can be nil.
	Report func(done, total int, plural string)
}

// Verify checks a published catalog. An error means that the catalog could not be checked; problems of the catalog are
// in the report.
func Verify(ctx context.Context, client *oci.Client, in VerifyInput) (Report, error) {
	unchecked := in.Source
	unchecked.Verification = oci.Verification{}
	digest, err := client.Resolve(ctx, unchecked)
	if err != nil {
		return Report{}, fmt.Errorf("verify %s: %w", in.Source, err)
	}
	v := &verifier{client: client, in: in, report: Report{Ref: in.Source.String(), Digest: digest}}
	if v.image, err = buildReference(in.Source, digest); err != nil {
		return Report{}, fmt.Errorf("verify %s: %w", in.Source, err)
	}
	for _, check := range []func(context.Context) (Check, error){
		v.checkSignature, v.checkCatalog, v.checkSBOM, v.checkBundles, v.checkUpgradePaths,
	} {
		c, err := check(ctx)
		if err != nil {
			return Report{}, fmt.Errorf("verify %s: %w", in.Source, err)
		}
		v.report.Checks = append(v.report.Checks, c)
	}
	return v.report, nil
}

// buildReference returns the reference by digest; empty for a directory.
func buildReference(s oci.Source, digest string) (string, error) {
	if s.Directory != "" {
		return "", nil
	}
	repository, err := oci.Repository(s.Image)
	return repository + "@" + digest, err
}

type verifier struct {
	client   *oci.Client
	in       VerifyInput
	report   Report
	image    string
	packages []*catalogs.Package
}

// newCounter returns a function that reports progress: each call counts one more of total as done.
func (v *verifier) newCounter(total int, plural string) func() {
	var mu sync.Mutex
	done := 0
	return func() {
		mu.Lock()
		defer mu.Unlock()
		done++
		if v.in.Report != nil {
			v.in.Report(done, total, plural)
		}
	}
}

// checkSignature checks that the catalog has a signature by a given key. Without a key, the check is skipped, and its
// text has the number of signatures.
func (v *verifier) checkSignature(ctx context.Context) (Check, error) {
	c := Check{Name: "signature"}
	if v.image == "" {
		c.Verdict, c.Text = Skipped, "a folder has none"
		if v.in.Source.Verification.Required() {
			c.Verdict = Failed
		}
		return c, nil
	}
	if !v.in.Source.Verification.Required() {
		bundles, err := v.client.ReadArtifacts(ctx, v.image, sign.BundleMediaType, v.in.Source.Access)
		if err != nil {
			return c, err
		}
		c.Verdict, c.Text = Skipped, "it has none"
		if len(bundles) > 0 {
			c.Text = fmt.Sprintf("it has %d, but no key was given to check them with", len(bundles))
		}
		return c, nil
	}
	err := v.client.Verify(ctx, v.in.Source, v.report.Digest)
	switch {
	case err == nil:
		c.Verdict, c.Text = Passed, "signed by a key that was given"
	case errors.Is(err, oci.ErrUnsigned):
		c.Verdict, c.Text = Failed, "it has none"
	case errors.Is(err, oci.ErrBadSignature):
		c.Verdict, c.Text, c.Details = Failed, "none is one by a key that was given", []string{err.Error()}
	default:
		return c, err
	}
	return c, nil
}

// checkCatalog reads the catalog, checks that it is valid, and keeps its packages for the later checks.
func (v *verifier) checkCatalog(ctx context.Context) (Check, error) {
	c := Check{Name: "catalog"}
	source := v.in.Source
	source.Verification = oci.Verification{} // checkSignature reports the signature
	var read eachReader = catalogs.ReadWithImages
	if v.image == "" { // there is no SBOM to compare the images with
		read = catalogs.ReadEach
	}
	packages, err := readValid(ctx, v.client, source, read)
	if errors.Is(err, catalogs.ErrNotCatalog) || errors.Is(err, catalogs.ErrInvalidPackage) ||
		errors.Is(err, oci.ErrDigestMismatch) {
		c.Verdict, c.Text, c.Details = Failed, "it cannot be used", strings.Split(err.Error(), "\n")
		return c, nil
	}
	if err != nil {
		return c, err
	}
	v.packages = packages
	bundles, blocked := 0, 0
	for _, p := range packages {
		bundles, blocked = bundles+len(p.Bundles), blocked+len(p.Blocks)
	}
	c.Verdict, c.Text = Passed, fmt.Sprintf("packages: %d, bundles: %d", len(packages), bundles)
	if blocked > 0 {
		c.Text += fmt.Sprintf(", blocked: %d", blocked)
	}
	return c, nil
}

// checkSBOM checks that at least one attached SBOM matches the catalog.
func (v *verifier) checkSBOM(ctx context.Context) (Check, error) {
	c := Check{Name: "sbom", Verdict: Skipped, Text: "there is nothing to compare it with"}
	switch {
	case v.image == "":
		c.Text = "a folder has none"
		return c, nil
	case v.packages == nil:
		return c, nil
	}
	lists, err := v.client.ReadArtifacts(ctx, v.image, sbom.MediaType, v.in.Source.Access)
	if err != nil {
		return c, err
	}
	if len(lists) == 0 {
		c.Verdict, c.Text = Warning, "it has none"
		return c, nil
	}
	repository, _, _ := strings.Cut(v.image, "@")
	for _, list := range lists {
		err := sbom.Check(list, repository, v.report.Digest, v.packages)
		if err == nil {
			return Check{Name: c.Name, Verdict: Passed, Text: "it lists what the catalog has"}, nil
		}
		c.Details = append(c.Details, err.Error())
	}
	c.Verdict, c.Text = Failed, "it is not the one of this catalog"
	return c, nil
}

// checkBundles checks that the registries have all bundles of the catalog. A bundle that is named by a tag is not read
// and gives a warning.
func (v *verifier) checkBundles(ctx context.Context) (Check, error) {
	c := Check{Name: "bundles", Verdict: Skipped, Text: "not looked for"}
	if v.in.SkipBundleCheck || v.packages == nil {
		return c, nil
	}
	wanted := slices.Sorted(maps.Keys(listImages(v.packages)))
	if len(wanted) == 0 {
		c.Verdict, c.Text = Passed, "all are in the catalog itself"
		return c, nil
	}
	var movable []string
	problems := make([]string, len(wanted))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	countDone := v.newCounter(len(wanted), "bundles")
	for i, image := range wanted {
		if !strings.Contains(image, "@sha256:") {
			movable = append(movable, image+" is named by a tag, and its content can change")
			continue
		}
		group.Go(func() error {
			defer countDone()
			err := v.client.CheckComplete(ctx, image, v.in.Deep, v.in.Source.Access)
			if errors.Is(err, oci.ErrNotFound) || errors.Is(err, oci.ErrDenied) || errors.Is(err, oci.ErrBadSource) ||
				errors.Is(err, oci.ErrDigestMismatch) {
				problems[i] = err.Error()
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return c, err
	}
	c.Details = append(movable, slices.DeleteFunc(problems, func(s string) bool { return s == "" })...)
	switch missing := len(c.Details) - len(movable); {
	case missing > 0:
		c.Verdict, c.Text = Failed, fmt.Sprintf("%d of %d are missing, or not what their digests say", missing,
			len(wanted))
	case len(movable) > 0:
		c.Verdict, c.Text = Warning, fmt.Sprintf("%d of %d are named without a digest", len(movable), len(wanted))
	default:
		c.Verdict, c.Text = Passed, fmt.Sprintf("all %d are there, with layers of the right size", len(wanted))
		if v.in.Deep {
			c.Text = fmt.Sprintf("all %d are there, with the content of their digests", len(wanted))
		}
	}
	return c, nil
}

// checkUpgradePaths compares the upgrade paths of OLM v0, OLM v1 and the plan in all packages, several packages at a
// time. It is skipped if checkCatalog failed.
func (v *verifier) checkUpgradePaths(context.Context) (Check, error) {
	c := Check{Name: "upgrades", Verdict: Skipped, Text: "there is nothing to try them on"}
	if v.packages == nil {
		return c, nil
	}
	checks := make([]upgradeCheck, len(v.packages))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	countDone := v.newCounter(len(v.packages), "packages")
	for i, p := range v.packages {
		group.Go(func() error {
			defer countDone()
			var err error
			checks[i], err = checkUpgrades(p)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return c, err
	}
	return summarizeUpgrades(checks), nil
}

// summarizeUpgrades returns the check of the upgrade paths of all packages: Failed if a path does not reach the head,
// Warning if paths only differ.
func summarizeUpgrades(packages []upgradeCheck) Check {
	c := Check{Name: "upgrades"}
	routes, compared, broken := 0, 0, 0
	for _, found := range packages {
		routes, compared = routes+found.routes, compared+found.routes+found.unpinned
		broken += found.broken
		c.Details = append(c.Details, found.details...)
	}
	// Each path that is broken or differs has a detail.
	switch differing := len(c.Details) - broken; {
	case broken > 0:
		c.Verdict, c.Text = Failed, fmt.Sprintf("%d of %d upgrade paths do not reach the head", broken, compared)
		if differing > 0 {
			c.Text += fmt.Sprintf(", and %d more differ between OLM v0, OLM v1 and the plan", differing)
		}
	case differing > 0:
		c.Verdict, c.Text = Warning, fmt.Sprintf("%d of %d upgrade paths differ between OLM v0, OLM v1 and the plan",
			differing, compared)
	default:
		c.Verdict, c.Text = Passed, fmt.Sprintf("all %d upgrade paths reach the head, and OLM v0 and OLM v1 "+
			"agree", routes)
	}
	return c
}

// upgradeCheck is the result for the upgrade paths of a package.
type upgradeCheck struct {
	// routes is the number of paths in channels, unpinned the number of OLM v1's paths without a channel.
	routes, unpinned int
	// details has a line for each path that differs or is broken. A broken path does not reach the head, or leads to
	// a lower version.
	details []string
	broken  int
}

// checkUpgrades compares the upgrade paths of OLM v0, OLM v1 and the plan in one package.
func checkUpgrades(p *catalogs.Package) (upgradeCheck, error) {
	report, err := agree.Check(p)
	if err != nil {
		return upgradeCheck{}, err
	}
	c := upgradeCheck{unpinned: len(report.Unpinned)}
	for _, channel := range report.Channels {
		c.routes += len(channel.Routes)
	}
	for _, d := range report.Disagreements() {
		if d.Verdict == agree.Stuck || d.Verdict == agree.Downgrades {
			c.broken++
		}
		c.details = append(c.details, fmt.Sprintf("package %s: %s", p.Name, d.Text))
	}
	return c, nil
}
