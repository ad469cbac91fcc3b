// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package run updates, checks and ejects one repository: it reads what there is, has package update decide, and has
// package repository write and commit. It prints nothing and asks nobody.
package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/bellwether-dev/bellwether/boilerplate/convention"
	"github.com/bellwether-dev/bellwether/boilerplate/repository"
	"github.com/bellwether-dev/bellwether/boilerplate/source"
	"github.com/bellwether-dev/bellwether/boilerplate/subscription"
	"github.com/bellwether-dev/bellwether/boilerplate/update"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
)

// What keeps a repository from being updated.
var (
	ErrNotSubscribed = errors.New("the repository subscribes to no conventions")
	ErrInProgress    = errors.New("an update is in progress")
	ErrConflicts     = errors.New("conflicts are not resolved")
	ErrNotNewer      = errors.New("the source has a lower version")
	ErrParameters    = errors.New("parameters have no value")
)

// Repository is a repository as it was read.
type Repository struct {
	Tree         *repository.Tree
	Text         []byte // of the subscription, nil without one
	Subscription *subscription.Subscription
	Lock         *subscription.Lock // nil where nothing was rendered yet
	Base         map[string]string
	Journal      *repository.Journal // the update in progress, nil without one

	sources source.Loader
}

// Open reads a repository that gets conventions from some sources, with its own keys. Without a subscription the error
// wraps ErrNotSubscribed, and the repository is returned with an empty one. Close the tree in any case but that of
// another error.
func Open(dir string, sources source.Loader) (*Repository, error) {
	tree, err := repository.OpenTree(dir)
	if err != nil {
		return nil, err
	}
	r := &Repository{Tree: tree, Subscription: &subscription.Subscription{}, sources: sources}
	err = r.read()
	if err != nil && !errors.Is(err, ErrNotSubscribed) {
		return nil, errors.Join(err, tree.Close())
	}
	return r, err
}

func (r *Repository) read() error {
	text, err := r.Tree.Text(subscription.LockFile)
	if err == nil && text != nil {
		r.Lock, err = subscription.ParseLock(text)
	}
	if err == nil {
		r.Base, err = r.Tree.Base(r.Lock)
	}
	if err == nil {
		r.Journal, err = r.Tree.Journal()
	}
	if err == nil {
		r.Text, err = r.Tree.Text(subscription.File)
	}
	switch {
	case err != nil:
		return err
	case r.Text == nil:
		return fmt.Errorf("%w: there is no %s in %s", ErrNotSubscribed, subscription.File, r.Tree.Dir)
	}
	if r.Subscription, err = subscription.Parse(r.Text); err != nil {
		return fmt.Errorf("%s: %w", subscription.File, err)
	}
	return nil
}

// loader returns a loader for this repository: with its keys, and folders relative to it.
func (r *Repository) loader() (*source.Loader, error) {
	l := r.sources
	l.Dir = r.Tree.Dir
	for _, name := range r.Subscription.Keys {
		text, err := r.Tree.Text(name)
		if err == nil && text == nil {
			err = fmt.Errorf("there is no file %s", name)
		}
		if err != nil {
			return nil, fmt.Errorf("read key: %w", err)
		}
		l.Keys = append(l.Keys, text)
	}
	return &l, nil
}

// Check returns what has drifted. It needs neither git nor a network.
func (r *Repository) Check(now time.Time) ([]update.Finding, error) {
	paths := update.Paths(r.Lock, nil, nil)
	for _, e := range r.Subscription.Exceptions {
		paths = append(paths, e.Path)
	}
	current, err := r.Tree.ReadAll(paths)
	if err != nil {
		return nil, err
	}
	return update.Check(update.State{Subscription: r.Subscription, Lock: r.Lock, Current: current,
		InProgress: r.Journal != nil, Now: now}), nil
}

// Options say what to update to.
type Options struct {
	Convention string // the one that To and Source are for; may be empty where there is one
	To, Source string // another version, another source

	Set       map[string]string // values of parameters as they are written on a command line
	Overwrite []string
	Adopt     bool
	Now       time.Time
}

// Proposal is an update that was planned and not applied.
type Proposal struct {
	Plan     *update.Plan
	Changes  []update.Change // those of Plan, and those of this program's own files
	Versions []string        // which conventions change, a sentence each
	Message  string          // of the commit
}

// Plan plans an update, and writes nothing.
func (r *Repository) Plan(ctx context.Context, o Options) (*Proposal, error) {
	loader, err := r.loader()
	if err != nil {
		return nil, err
	}
	p := &planning{Repository: r, options: o, loader: loader, next: *r.Subscription, renames: map[string]string{}}
	p.next.Conventions = slices.Clone(r.Subscription.Conventions)
	p.next.Parameters = map[string]any{}
	maps.Copy(p.next.Parameters, r.Subscription.Parameters)
	err = p.target()
	for i := 0; err == nil && i < len(p.next.Conventions); i++ {
		err = p.load(ctx, i)
	}
	if err == nil {
		err = p.setParameters()
	}
	if err != nil {
		return nil, err
	}
	return p.propose(ctx)
}

// planning is the making of one proposal.
type planning struct {
	*Repository
	options     Options
	loader      *source.Loader
	next        subscription.Subscription
	conventions []*convention.Convention
	renames     map[string]string
	versions    []string
	notes       []string
	changelog   []string
}

// target applies what the options say about one convention.
func (p *planning) target() error {
	o := &p.options
	if o.To == "" && o.Source == "" {
		return nil
	}
	if o.Convention == "" && len(p.next.Conventions) == 1 {
		o.Convention = p.next.Conventions[0].Name
	}
	use := p.next.Use(o.Convention)
	if use == nil {
		return fmt.Errorf("%w: name the one that changes", source.ErrNotFound)
	}
	use.Source, use.Version, use.Digest = cmp.Or(o.Source, use.Source), o.To, ""
	if image, ok := strings.CutPrefix(use.Source, subscription.OCI); ok && o.To != "" {
		repo, err := oci.Repository(image)
		use.Source = subscription.OCI + repo + ":" + o.To
		return err
	}
	return nil
}

// load gets one convention, and pins it in the next subscription.
func (p *planning) load(ctx context.Context, i int) error {
	use := p.next.Conventions[i]
	locked := p.Lock.Convention(use.Name)
	isTarget := p.options.Convention == use.Name && (p.options.To != "" || p.options.Source != "")
	ask := use
	isAsRendered := locked != nil && (locked.Use == use || locked.Source != use.Source && locked.Digest == use.Digest)
	if !isTarget && (isAsRendered || !strings.HasPrefix(use.Source, subscription.OCI)) {
		ask.Digest, ask.Version = "", "" // what the source has now, also where somebody has written another source
	}
	found, err := p.loader.Load(ctx, ask, locked)
	if errors.Is(err, oci.ErrUnreachable) && use.Digest != "" && ask.Digest == "" {
		p.notes = append(p.notes, fmt.Sprintf("%s stays at %s: its registry cannot be reached", use.Name, use.Version))
		found, err = p.loader.Load(ctx, use, locked)
	}
	if err != nil {
		return err
	}
	if locked != nil && !isTarget && isLower(found.Use.Version, locked.Version) {
		return fmt.Errorf("convention %s: %w: %s has version %s, and %s was rendered", use.Name, ErrNotNewer,
			use.Source, found.Use.Version, locked.Version)
	}
	p.next.Conventions[i] = found.Use
	p.conventions = append(p.conventions, found.Convention)
	p.compare(found, locked)
	return nil
}

func isLower(a, b string) bool {
	left, errLeft := semver.Parse(a)
	right, errRight := semver.Parse(b)
	return errLeft == nil && errRight == nil && left.LT(right)
}

// compare notes what a new version brings.
func (p *planning) compare(found *source.Loaded, locked *subscription.Locked) {
	switch {
	case locked == nil:
		p.versions = append(p.versions, fmt.Sprintf("%s %s", found.Name, found.Version))
	case locked.Version != found.Version:
		p.versions = append(p.versions, fmt.Sprintf("%s %s to %s", found.Name, locked.Version, found.Version))
		for _, m := range found.MigrationsSince(locked.Version) {
			p.migrate(m)
			for _, note := range m.Notes {
				p.changelog = append(p.changelog, fmt.Sprintf("%s %s: %s", found.Name, m.To, note))
			}
		}
	case locked.Digest != found.Use.Digest:
		p.versions = append(p.versions, fmt.Sprintf("%s %s with another content", found.Name, found.Version))
	}
}

// migrate applies one version. All its renames are of what was there before it.
func (p *planning) migrate(m convention.Migration) {
	renames, parameters := maps.Clone(p.renames), maps.Clone(p.next.Parameters)
	maps.Copy(p.renames, m.Rename)
	for from, to := range renames {
		p.renames[from] = cmp.Or(m.Rename[to], to)
	}
	for from := range m.RenameParameters {
		delete(p.next.Parameters, from)
	}
	for from, to := range m.RenameParameters {
		if value, ok := parameters[from]; ok {
			p.next.Parameters[to] = value
		}
	}
	for name, value := range m.Set {
		if _, ok := p.next.Parameters[name]; !ok {
			p.next.Parameters[name] = value
		}
	}
}

// setParameters sets what the options say, and refuses values without a parameter and parameters without a value.
func (p *planning) setParameters() error {
	known := convention.Parameters(p.conventions)
	for name, text := range p.options.Set {
		p.next.Parameters[name] = text
		if parameter, ok := known[name]; ok {
			value, err := parameter.Parse(text)
			if err != nil {
				return err
			}
			p.next.Parameters[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.next.Parameters)) {
		if _, ok := known[name]; !ok {
			return fmt.Errorf("%w: no convention has a parameter %s", convention.ErrInvalid, name)
		}
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if _, ok := p.next.Parameters[name]; !ok && known[name].Default == nil {
			missing = append(missing, fmt.Sprintf("%s (%s)", name, known[name].Description))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: %s", ErrParameters, strings.Join(missing, ", "))
	}
	return nil
}

func (p *planning) propose(ctx context.Context) (*Proposal, error) {
	wanted, err := convention.Render(p.conventions, p.next.Parameters)
	if err != nil {
		return nil, err
	}
	current, err := p.Tree.ReadAll(update.Paths(p.Lock, wanted, p.renames))
	if err != nil {
		return nil, err
	}
	plan, err := update.New(update.Input{Lock: p.Lock, Base: p.Base, Current: current, Wanted: wanted,
		Renames: p.renames, Exceptions: p.next.Exceptions, Overwrite: p.options.Overwrite, Adopt: p.options.Adopt,
		Now: p.options.Now, Merge: repository.MergeFile(ctx)})
	if err != nil {
		return nil, err
	}
	plan.Notes = append(plan.Notes, p.notes...)
	plan.Lock.Parameters = p.next.Parameters
	for i, c := range p.conventions {
		l := subscription.Locked{Use: p.next.Conventions[i], Requires: c.Requires}
		for _, parameter := range c.Parameters {
			l.Parameters = append(l.Parameters, parameter.Name)
		}
		plan.Lock.Conventions = append(plan.Lock.Conventions, l)
	}
	text := p.Text
	if text == nil || !reflect.DeepEqual(p.next, *p.Subscription) {
		if text, err = p.next.Write(p.Text); err != nil {
			return nil, err
		}
	}
	return p.proposal(plan, text, "Update boilerplate", p.versions, p.changelog)
}

// proposal adds the program's own files and the message to a plan.
func (r *Repository) proposal(plan *update.Plan, text []byte, title string, versions, changelog []string) (*Proposal,
	error) {
	changes, err := r.Tree.Changes(plan, text, r.Lock)
	if err != nil {
		return nil, err
	}
	p := &Proposal{Plan: plan, Changes: changes, Versions: versions}
	if len(versions) > 0 {
		title += ": " + strings.Join(versions, ", ")
	}
	const longestTitle = 72
	if len(title) > longestTitle {
		title = title[:strings.LastIndexAny(title[:longestTitle], " ,")] + " …"
	}
	var lines []string
	for _, c := range plan.Changes {
		lines = append(lines, c.String())
	}
	p.Message = title + "\n" + section("Conventions", versions) + section("What is new", changelog) +
		section("Changes", lines) + section("Left as it is", plan.Notes)
	return p, nil
}

func section(heading string, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return "\n" + heading + ":\n- " + strings.Join(lines, "\n- ") + "\n"
}

// Result is what became of an update.
type Result struct {
	Commit    string   // its short name; empty where none was made
	Conflicts []string // files in which conflicts have to be resolved; nothing is committed then
}

// Apply writes a proposal, and commits it if asked to. It refuses, before it writes anything, what is no git repository
// and what has changes that could be lost or mixed with the update: the error wraps repository.ErrNotRepository or
// repository.ErrDirty.
func (r *Repository) Apply(ctx context.Context, p *Proposal, commit bool) (Result, error) {
	git, err := repository.OpenGit(ctx, r.Tree.Dir)
	if err == nil { // The subscription is what people edit before an update.
		err = git.CheckClean(ctx, update.ChangedPaths(p.Changes), subscription.File)
	}
	message := ""
	if commit {
		message = p.Message
	}
	if err == nil {
		r.Journal, err = r.Tree.Begin(p.Changes, message)
	}
	if err != nil {
		return Result{}, err
	}
	return r.Continue(ctx)
}

// Continue goes on with an update in progress: it writes what is not written yet, and commits once no conflict is left.
func (r *Repository) Continue(ctx context.Context) (Result, error) {
	git, err := repository.OpenGit(ctx, r.Tree.Dir)
	if err != nil {
		return Result{}, err
	}
	conflicts := update.Conflicts(r.Journal.Changes)
	if !r.Journal.Applied {
		if err := r.Tree.Apply(r.Journal); err != nil || len(conflicts) > 0 {
			return Result{Conflicts: conflicts}, err
		}
	}
	files, err := r.Tree.ReadAll(conflicts)
	if err != nil {
		return Result{}, err
	}
	maps.DeleteFunc(files, func(_ string, f *update.File) bool { return update.ConflictLine(f.Text) == 0 })
	if len(files) > 0 {
		return Result{}, fmt.Errorf("%w: %s", ErrConflicts, strings.Join(slices.Sorted(maps.Keys(files)), ", "))
	}
	var result Result
	if r.Journal.Message != "" {
		result.Commit, err = git.Commit(ctx, r.Journal.Message, update.ChangedPaths(r.Journal.Changes))
		if err != nil {
			return result, err
		}
	}
	r.Journal = nil
	return result, r.Tree.Finish()
}

// Eject plans the end of a subscription to one convention, or with an empty name to all of them. The files stay.
func (r *Repository) Eject(name string) (*Proposal, error) {
	if r.Lock == nil {
		return nil, fmt.Errorf("%w: nothing was rendered yet", ErrNotSubscribed)
	}
	current, err := r.Tree.ReadAll(update.Paths(r.Lock, nil, nil))
	if err != nil {
		return nil, err
	}
	next, err := r.without(name)
	if err != nil {
		return nil, err
	}
	plan := update.Eject(r.Lock, r.Base, current, name)
	plan.Lock.Parameters = next.Parameters
	if name == "" || len(next.Conventions) == 0 {
		return r.proposal(plan, nil, "Eject all boilerplate", nil, nil)
	}
	text, err := next.Write(r.Text)
	if err != nil {
		return nil, err
	}
	return r.proposal(plan, text, "Eject boilerplate of convention "+name, nil, nil)
}

// without is the subscription without a convention, and without the parameters that it alone has.
func (r *Repository) without(name string) (*subscription.Subscription, error) {
	if name != "" && r.Lock.Convention(name) == nil {
		return nil, fmt.Errorf("%w: the repository subscribes to no convention %s", source.ErrNotFound, name)
	}
	next := *r.Subscription
	next.Parameters = map[string]any{}
	next.Conventions = slices.DeleteFunc(slices.Clone(next.Conventions),
		func(u subscription.Use) bool { return u.Name == name })
	for _, l := range r.Lock.Conventions {
		if slices.Contains(l.Requires, name) {
			return nil, fmt.Errorf("%w: convention %s requires %s", convention.ErrInvalid, l.Name, name)
		}
		for _, parameter := range l.Parameters {
			if value, ok := r.Subscription.Parameters[parameter]; ok && l.Name != name {
				next.Parameters[parameter] = value
			}
		}
	}
	return &next, nil
}
