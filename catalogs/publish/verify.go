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

// Verdict is the outcome of a check.
type Verdict string

// Verdicts, the worst last. Skipped says that the check was not requested, or that an earlier one failed.
const (
	Passed  Verdict = "passed"
	Skipped Verdict = "skipped"
	Warning Verdict = "warning"
	Failed  Verdict = "failed"
)

// Check is one thing that was looked at.
type Check struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	// Text says in one line what was found.
	Text string `json:"text"`
	// Details are one line for each thing that is wrong.
	Details []string `json:"details,omitempty"`
}

// Report is what a verification found, in the order of the checks: signature, catalog, sbom, bundles, upgrades.
type Report struct {
	Ref    string  `json:"ref"`
	Digest string  `json:"digest"`
	Checks []Check `json:"checks"`
}

// OK reports whether nothing failed.
func (r Report) OK() bool {
	return !slices.ContainsFunc(r.Checks, func(c Check) bool { return c.Verdict == Failed })
}

// VerifyInput says what to verify.
type VerifyInput struct {
	// Source is the published catalog; with its Verification a signature by one of those keys is asked for.
	Source oci.Source
	// SkipBundleCheck leaves out the look at whether the registries have the catalog's bundles.
	SkipBundleCheck bool
	// Deep reads every layer of every bundle and compares it with its digest, and not only its size.
	Deep bool
	// Report is called after each bundle and each package that was checked, from several goroutines but never at the
	// same time; what is the plural of what is counted. It may be nil.
	Report func(done, total int, what string)
}

// Verify looks at everything that a published catalog promises. An error says that the catalog could not be looked at;
// what is wrong with it is in the report.
func Verify(ctx context.Context, client *oci.Client, in VerifyInput) (Report, error) {
	unchecked := in.Source
	unchecked.Verification = oci.Verification{}
	digest, err := client.Resolve(ctx, unchecked)
	if err != nil {
		return Report{}, fmt.Errorf("verify %s: %w", in.Source, err)
	}
	v := &verifier{client: client, in: in, report: Report{Ref: in.Source.String(), Digest: digest}}
	if v.image, err = imageOf(in.Source, digest); err != nil {
		return Report{}, fmt.Errorf("verify %s: %w", in.Source, err)
	}
	for _, check := range []func(context.Context) (Check, error){v.signature, v.catalog, v.sbom, v.bundles,
		v.upgrades} {
		c, err := check(ctx)
		if err != nil {
			return Report{}, fmt.Errorf("verify %s: %w", in.Source, err)
		}
		v.report.Checks = append(v.report.Checks, c)
	}
	return v.report, nil
}

// imageOf is the reference by digest; empty for a directory.
func imageOf(s oci.Source, digest string) (string, error) {
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

// count returns what reports each time that one more of total is done.
func (v *verifier) count(total int, what string) func() {
	var mu sync.Mutex
	done := 0
	return func() {
		mu.Lock()
		defer mu.Unlock()
		done++
		if v.in.Report != nil {
			v.in.Report(done, total, what)
		}
	}
}

func (v *verifier) signature(ctx context.Context) (Check, error) {
	c := Check{Name: "signature"}
	if v.image == "" {
		c.Verdict, c.Text = Skipped, "a folder has none"
		if v.in.Source.Verification.Required() {
			c.Verdict = Failed
		}
		return c, nil
	}
	if !v.in.Source.Verification.Required() {
		bundles, err := v.client.Attached(ctx, v.image, sign.BundleMediaType, v.in.Source.Access)
		if err != nil {
			return c, err
		}
		c.Verdict, c.Text = Skipped, "it has none"
		if len(bundles) > 0 {
			c.Text = fmt.Sprintf("it has %d, which no key was given to check with", len(bundles))
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

func (v *verifier) catalog(ctx context.Context) (Check, error) {
	c := Check{Name: "catalog"}
	source := v.in.Source
	source.Verification = oci.Verification{} // It is reported on by itself.
	var read eachReader = catalogs.ReadWithImages
	if v.image == "" { // there is no SBOM to compare them with
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

func (v *verifier) sbom(ctx context.Context) (Check, error) {
	c := Check{Name: "sbom", Verdict: Skipped, Text: "there is nothing to compare it with"}
	switch {
	case v.image == "":
		c.Text = "a folder has none"
		return c, nil
	case v.packages == nil:
		return c, nil
	}
	lists, err := v.client.Attached(ctx, v.image, sbom.MediaType, v.in.Source.Access)
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

func (v *verifier) bundles(ctx context.Context) (Check, error) {
	c := Check{Name: "bundles", Verdict: Skipped, Text: "not looked for"}
	if v.in.SkipBundleCheck || v.packages == nil {
		return c, nil
	}
	wanted := slices.Sorted(maps.Keys(images(v.packages)))
	if len(wanted) == 0 {
		c.Verdict, c.Text = Passed, "all are in the catalog itself"
		return c, nil
	}
	var movable []string
	problems := make([]string, len(wanted))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	checked := v.count(len(wanted), "bundles")
	for i, image := range wanted {
		if !strings.Contains(image, "@sha256:") {
			movable = append(movable, image+" is named by a tag, and what that is can change")
			continue
		}
		group.Go(func() error {
			defer checked()
			err := v.client.Complete(ctx, image, v.in.Deep, v.in.Source.Access)
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

func (v *verifier) upgrades(context.Context) (Check, error) {
	c := Check{Name: "upgrades", Verdict: Skipped, Text: "there is nothing to try them on"}
	if v.packages == nil {
		return c, nil
	}
	checks := make([]upgradeCheck, len(v.packages))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	checked := v.count(len(v.packages), "packages")
	for i, p := range v.packages {
		group.Go(func() error {
			defer checked()
			var err error
			checks[i], err = checkUpgrades(p)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return c, err
	}
	return upgradesOf(checks), nil
}

// upgradesOf is the check of the upgrade paths of all packages.
func upgradesOf(packages []upgradeCheck) Check {
	c := Check{Name: "upgrades"}
	routes, compared, broken := 0, 0, 0
	for _, found := range packages {
		routes, compared = routes+found.routes, compared+found.routes+found.unpinned
		broken += found.broken
		c.Details = append(c.Details, found.details...)
	}
	switch differ := len(c.Details) - broken; {
	case broken > 0:
		c.Verdict, c.Text = Failed, fmt.Sprintf("%d of %d upgrade paths do not reach the head", broken, compared)
		if differ > 0 {
			c.Text += fmt.Sprintf(", and %d more differ between OLM v0, OLM v1 and the plan", differ)
		}
	case differ > 0:
		c.Verdict, c.Text = Warning, fmt.Sprintf("%d of %d upgrade paths differ between OLM v0, OLM v1 and the plan",
			differ, compared)
	default:
		c.Verdict, c.Text = Passed, fmt.Sprintf("all %d upgrade paths reach the head, and OLM v0 and OLM v1 "+
			"agree", routes)
	}
	return c
}

// upgradeCheck is what was found on the upgrade paths of a package.
type upgradeCheck struct {
	// routes are those in channels; unpinned are those of OLM v1 where no channel is named.
	routes, unpinned int
	// details has a line for each that differs or is broken: it does not reach the head, or leads down.
	details []string
	broken  int
}

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
