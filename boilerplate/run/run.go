// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package run updates, checks and ejects one repository: it reads what there is, has package update decide, and has
// package repository write and commit. It prints nothing and asks nobody.
package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

var (
	// ErrNotSubscribed says that a repository has no .boilerplate.yaml.
	ErrNotSubscribed = errors.New("the repository subscribes to no conventions")
	// ErrInProgress says that an update was not finished.
	ErrInProgress = errors.New("an update is in progress")
	// ErrConflicts says that conflicts are not resolved.
	ErrConflicts = errors.New("conflicts are not resolved")
	// ErrNotNewer says that a source has a lower version than what was rendered.
	ErrNotNewer = errors.New("the source has a lower version")
)

// Repository is a repository as it was read.
type Repository struct {
	Tree *repository.Tree
	// Text is that of the subscription, nil without one.
	Text         []byte
	Subscription *subscription.Subscription
	// Lock is nil where nothing was rendered yet.
	Lock *subscription.Lock
	Base map[string]string
	// Journal is the update in progress, nil without one.
	Journal *repository.Journal
}

// Open reads a repository. Without a subscription the error wraps ErrNotSubscribed, and the repository is returned with
// an empty one. Close the tree in any case but that of another error.
func Open(dir string) (*Repository, error) {
	tree, err := repository.OpenTree(dir)
	if err != nil {
		return nil, err
	}
	r := &Repository{Tree: tree, Subscription: &subscription.Subscription{}}
	if err := r.read(); err != nil && !errors.Is(err, ErrNotSubscribed) {
		return nil, errors.Join(err, tree.Close())
	} else if err != nil {
		return r, err
	}
	return r, nil
}

func (r *Repository) read() error {
	text, err := r.Tree.Text(subscription.LockFile)
	if err != nil {
		return err
	}
	if text != nil {
		if r.Lock, err = subscription.ParseLock(text); err != nil {
			return err
		}
	}
	if r.Base, err = r.Tree.Base(r.Lock); err != nil {
		return err
	}
	if r.Journal, err = r.Tree.Journal(); err != nil {
		return err
	}
	if r.Text, err = r.Tree.Text(subscription.File); err != nil {
		return err
	}
	if r.Text == nil {
		return fmt.Errorf("%w: there is no %s in %s", ErrNotSubscribed, subscription.File, r.Tree.Dir)
	}
	if r.Subscription, err = subscription.Parse(r.Text); err != nil {
		return fmt.Errorf("%s: %w", subscription.File, err)
	}
	return nil
}

// Keys returns the public keys that the subscription names.
func (r *Repository) Keys() ([][]byte, error) {
	var out [][]byte
	for _, name := range r.Subscription.Keys {
		text, err := r.Tree.Text(name)
		if err != nil {
			return nil, fmt.Errorf("read key: %w", err)
		}
		if text == nil {
			return nil, fmt.Errorf("read key: there is no file %s", name)
		}
		out = append(out, text)
	}
	return out, nil
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
	Loader *source.Loader
	// Convention is the one that To and Source are for; it may be empty where there is one.
	Convention string
	// To is another version, Source another source.
	To, Source string
	// Set are values of parameters as they are written on a command line.
	Set       map[string]string
	Overwrite []string
	Adopt     bool
	Now       time.Time
}

// Proposal is an update that was planned and not applied.
type Proposal struct {
	Plan *update.Plan
	// Changes are those of Plan, and those of this program's own files.
	Changes []update.Change
	// Versions tell which conventions change, a sentence each.
	Versions []string
	// Message is that of the commit.
	Message string
}

// Plan plans an update, and writes nothing.
func (r *Repository) Plan(ctx context.Context, o Options) (*Proposal, error) {
	p := &planning{Repository: r, options: o, renames: map[string]string{}}
	p.next = *r.Subscription
	p.next.Conventions = slices.Clone(r.Subscription.Conventions)
	p.next.Parameters = maps.Clone(r.Subscription.Parameters)
	if p.next.Parameters == nil {
		p.next.Parameters = map[string]any{}
	}
	if err := p.target(); err != nil {
		return nil, err
	}
	for i := range p.next.Conventions {
		if err := p.load(ctx, i); err != nil {
			return nil, err
		}
	}
	if err := p.setParameters(); err != nil {
		return nil, err
	}
	return p.propose(ctx)
}

// planning is the making of one proposal.
type planning struct {
	*Repository
	options     Options
	next        subscription.Subscription
	conventions []*convention.Convention
	renames     map[string]string
	versions    []string
	notes       []string
	changelog   []string
}

// target applies what the options say about one convention.
func (p *planning) target() error {
	o := p.options
	if o.To == "" && o.Source == "" {
		return nil
	}
	if o.Convention == "" && len(p.next.Conventions) == 1 {
		o.Convention = p.next.Conventions[0].Name
	}
	use := p.next.Use(o.Convention)
	if use == nil {
		return fmt.Errorf("%w: name the one that changes: %s", source.ErrNotFound, names(p.next.Conventions))
	}
	if o.Source != "" {
		use.Source = o.Source
	}
	use.Version, use.Digest = o.To, ""
	if image, ok := strings.CutPrefix(use.Source, subscription.OCI); ok && o.To != "" {
		repo, err := oci.Repository(image)
		if err != nil {
			return err
		}
		use.Source = subscription.OCI + repo + ":" + o.To
	}
	p.options.Convention = o.Convention
	return nil
}

func names(uses []subscription.Use) string {
	var out []string
	for _, u := range uses {
		out = append(out, u.Name)
	}
	return strings.Join(out, ", ")
}

// load gets one convention, and pins it in the next subscription.
func (p *planning) load(ctx context.Context, i int) error {
	use, locked := p.next.Conventions[i], p.Lock.Convention(p.next.Conventions[i].Name)
	isTarget := p.options.Convention == use.Name && (p.options.To != "" || p.options.Source != "")
	ask := use
	isAsRendered := locked != nil && (locked.Use == use || locked.Source != use.Source && locked.Digest == use.Digest)
	if !isTarget && (isAsRendered || !strings.HasPrefix(use.Source, subscription.OCI)) {
		ask.Digest, ask.Version = "", "" // what the source has now, also where somebody has written another source
	}
	found, err := p.options.Loader.Load(ctx, ask, locked)
	if errors.Is(err, oci.ErrUnreachable) && use.Digest != "" && ask.Digest == "" {
		p.notes = append(p.notes, fmt.Sprintf("%s stays at %s: its registry cannot be reached", use.Name, use.Version))
		found, err = p.options.Loader.Load(ctx, use, locked)
	}
	if err != nil {
		return err
	}
	if ask.Version != "" && found.Use.Version != ask.Version {
		return fmt.Errorf("convention %s: %w: %s has version %s, and not %s", use.Name, source.ErrNotFound, use.Source,
			found.Use.Version, ask.Version)
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

func (p *planning) migrate(m convention.Migration) {
	for from, to := range m.Rename {
		for first, then := range p.renames { // a file that an earlier version renamed
			if then == from {
				p.renames[first] = to
			}
		}
		p.renames[from] = to
	}
	for from, to := range m.RenameParameters {
		if value, ok := p.next.Parameters[from]; ok {
			p.next.Parameters[to] = value
			delete(p.next.Parameters, from)
		}
	}
	for name, value := range m.Set {
		if _, ok := p.next.Parameters[name]; !ok {
			p.next.Parameters[name] = value
		}
	}
}

// ErrParameters says that parameters have no value.
var ErrParameters = errors.New("parameters have no value")

func (p *planning) setParameters() error {
	for _, name := range slices.Sorted(maps.Keys(p.options.Set)) {
		parameter, ok := convention.Find(p.conventions, name)
		if !ok {
			return fmt.Errorf("%w: no convention has a parameter %s", convention.ErrInvalid, name)
		}
		value, err := parameter.Parse(p.options.Set[name])
		if err != nil {
			return err
		}
		p.next.Parameters[name] = value
	}
	if missing := convention.Missing(p.conventions, p.next.Parameters); len(missing) > 0 {
		var lines []string
		for _, m := range missing {
			lines = append(lines, fmt.Sprintf("%s (%s)", m.Name, m.Description))
		}
		return fmt.Errorf("%w: %s", ErrParameters, strings.Join(lines, ", "))
	}
	return convention.CheckGiven(p.conventions, p.next.Parameters)
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
	text, err := p.text()
	if err != nil {
		return nil, err
	}
	return p.proposal(plan, text, "Update boilerplate", p.versions, p.changelog)
}

// text is that of the next subscription. Where nothing in it changes, it is the same, byte by byte.
func (p *planning) text() ([]byte, error) {
	text, err := p.next.Write(p.Text)
	if err != nil || p.Text == nil {
		return text, err
	}
	same, err := p.Subscription.Write(p.Text)
	if err == nil && string(same) == string(text) {
		return p.Text, nil
	}
	return text, err
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
	p.Message = title + "\n"
	section := func(heading string, lines []string) {
		if len(lines) > 0 {
			p.Message += "\n" + heading + ":\n"
			for _, line := range lines {
				p.Message += "- " + line + "\n"
			}
		}
	}
	section("Conventions", versions)
	section("What is new", changelog)
	section("Created", Lines(plan.Changes, update.Create))
	section("Updated", Lines(plan.Changes, update.Update))
	section("Removed", Lines(plan.Changes, update.Remove))
	section("Left as it is", plan.Notes)
	return p, nil
}

// Lines are the changes of one action, for people.
func Lines(changes []update.Change, action update.Action) []string {
	var out []string
	for _, c := range changes {
		if c.Action == action {
			line := c.Path + " (" + string(c.Kind) + ", " + c.Convention
			if c.Note != "" {
				line += "; " + c.Note
			}
			out = append(out, line+")")
		}
	}
	return out
}

// Result is what became of an update.
type Result struct {
	// Commit is the short name of the commit; empty where none was made.
	Commit string
	// Conflicts are the files in which conflicts have to be resolved; nothing is committed then.
	Conflicts []string
}

// Apply writes a proposal, and commits it if asked to. It refuses, before it writes anything, what is no git repository
// and what has changes that could be lost or mixed with the update: the error wraps repository.ErrNotRepository or
// repository.ErrDirty.
func (r *Repository) Apply(ctx context.Context, p *Proposal, commit bool) (Result, error) {
	git, err := repository.OpenGit(ctx, r.Tree.Dir)
	if err != nil {
		return Result{}, err
	}
	if err := r.checkClean(ctx, git, p); err != nil {
		return Result{}, err
	}
	message := ""
	if commit {
		message = p.Message
	}
	if r.Journal, err = r.Tree.Begin(p.Changes, message); err != nil {
		return Result{}, err
	}
	return r.finish(ctx, git)
}

// checkClean permits changes of the subscription, which is what people edit before an update.
func (r *Repository) checkClean(ctx context.Context, git *repository.Git, p *Proposal) error {
	status, err := git.Status(ctx)
	if err != nil {
		return err
	}
	var paths []string
	for _, c := range p.Changes {
		paths = append(paths, c.Path)
	}
	return status.CheckClean(paths, subscription.File)
}

// Continue goes on with an update in progress: it writes what is not written yet, and commits once no conflict is left.
func (r *Repository) Continue(ctx context.Context) (Result, error) {
	git, err := repository.OpenGit(ctx, r.Tree.Dir)
	if err != nil {
		return Result{}, err
	}
	if !r.Journal.Applied {
		return r.finish(ctx, git)
	}
	files, err := r.Tree.ReadAll(r.Journal.Conflicts())
	if err != nil {
		return Result{}, err
	}
	var left []string
	for name, f := range files {
		if update.HasConflict(f.Text) {
			left = append(left, name)
		}
	}
	if len(left) > 0 {
		slices.Sort(left)
		return Result{}, fmt.Errorf("%w: %s", ErrConflicts, strings.Join(left, ", "))
	}
	return r.commit(ctx, git)
}

func (r *Repository) finish(ctx context.Context, git *repository.Git) (Result, error) {
	if err := r.Tree.Apply(r.Journal); err != nil {
		return Result{}, err
	}
	if conflicts := r.Journal.Conflicts(); len(conflicts) > 0 {
		return Result{Conflicts: conflicts}, nil
	}
	return r.commit(ctx, git)
}

func (r *Repository) commit(ctx context.Context, git *repository.Git) (Result, error) {
	var result Result
	if r.Journal.Message != "" {
		var err error
		if result.Commit, err = git.Commit(ctx, r.Journal.Message, r.Journal.Paths()); err != nil {
			return result, err
		}
	}
	r.Journal = nil
	return result, r.Tree.Finish()
}

// Abort takes an update in progress back.
func (r *Repository) Abort() error {
	err := r.Tree.Abort(r.Journal)
	if err == nil {
		r.Journal = nil
	}
	return err
}

// Eject plans the end of a subscription to one convention, or with an empty name to all of them. The files stay.
func (r *Repository) Eject(name string) (*Proposal, error) {
	if r.Lock == nil {
		return nil, fmt.Errorf("%w: nothing was rendered yet", ErrNotSubscribed)
	}
	if name != "" && r.Lock.Convention(name) == nil {
		return nil, fmt.Errorf("%w: the repository subscribes to no convention %s", source.ErrNotFound, name)
	}
	next := *r.Subscription
	next.Parameters = map[string]any{}
	next.Conventions = slices.DeleteFunc(slices.Clone(next.Conventions),
		func(u subscription.Use) bool { return u.Name == name })
	for _, l := range r.Lock.Conventions {
		if l.Name == name || name == "" {
			continue
		}
		if slices.Contains(l.Requires, name) {
			return nil, fmt.Errorf("%w: convention %s requires %s", convention.ErrInvalid, l.Name, name)
		}
		for _, parameter := range l.Parameters {
			if value, ok := r.Subscription.Parameters[parameter]; ok {
				next.Parameters[parameter] = value
			}
		}
	}
	current, err := r.Tree.ReadAll(update.Paths(r.Lock, nil, nil))
	if err != nil {
		return nil, err
	}
	plan := update.Eject(r.Lock, r.Base, current, name)
	plan.Lock.Parameters = next.Parameters
	var text []byte
	title := "Eject all boilerplate"
	if name != "" && len(next.Conventions) > 0 {
		title = "Eject boilerplate of convention " + name
		if text, err = next.Write(r.Text); err != nil {
			return nil, err
		}
	}
	return r.proposal(plan, text, title, nil, nil)
}
