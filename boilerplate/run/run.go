// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package run updates, checks and ejects one repository. It reads the repository; package update makes the decisions,
// and package repository writes and commits. The package must not print, and must not ask the user.
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

// Reasons why a repository cannot be updated.
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
	Text         []byte // the text of the subscription; nil if there is none
	Subscription *subscription.Subscription
	Lock         *subscription.Lock // nil before the first update
	Base         map[string]string
	Journal      *repository.Journal // the update in progress; nil if there is none

	sources source.Loader
}

// Open reads a repository that loads its conventions from the given sources, with the repository's own keys. If there
// is no subscription, the error wraps ErrNotSubscribed, and the returned repository has an empty subscription. The
// caller must close the tree if the returned repository is not nil.
func Open(dir string, sources source.Loader) (*Repository, error) {
	tree, err := repository.OpenTree(dir)
	if err != nil {
		return nil, err
	}
	r := &Repository{Tree: tree, Subscription: &subscription.Subscription{}, sources: sources}
	err = r.readFiles()
	if err != nil && !errors.Is(err, ErrNotSubscribed) {
		return nil, errors.Join(err, tree.Close())
	}
	return r, err
}

// readFiles reads the lock, the base texts, the journal and the subscription. It reads the subscription last: if there
// is none, the error wraps ErrNotSubscribed, and the other fields are set.
func (r *Repository) readFiles() error {
	text, err := r.Tree.ReadText(subscription.LockFile)
	if err == nil && text != nil {
		r.Lock, err = subscription.ParseLock(text)
	}
	if err == nil {
		r.Base, err = r.Tree.ReadBase(r.Lock)
	}
	if err == nil {
		r.Journal, err = r.Tree.ReadJournal()
	}
	if err == nil {
		r.Text, err = r.Tree.ReadText(subscription.File)
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

// newLoader returns a loader for this repository, which uses its keys, and resolves folders relative to it.
func (r *Repository) newLoader() (*source.Loader, error) {
	l := r.sources
	l.Dir = r.Tree.Dir
	for _, name := range r.Subscription.Keys {
		text, err := r.Tree.ReadText(name)
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

// Check returns the differences between the repository and its conventions. It uses neither git nor the network.
func (r *Repository) Check(now time.Time) ([]update.Finding, error) {
	paths := update.ListPaths(r.Lock, nil, nil)
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

// Options select the target of an update.
type Options struct {
	Convention string // the convention for To and Source; can be empty if there is only one
	To, Source string // another version, another source

	Set       map[string]string // values of parameters in the form of a command line
	Overwrite []string
	Adopt     bool
	Now       time.Time
}

// Proposal is a planned update.
type Proposal struct {
	Plan     *update.Plan
	Changes  []update.Change // the changes of Plan, and of this program's own files
	Versions []string        // a sentence for each convention that changes
	Message  string          // the message of the commit
}

// Plan plans an update. It writes no files.
func (r *Repository) Plan(ctx context.Context, o Options) (*Proposal, error) {
	loader, err := r.newLoader()
	if err != nil {
		return nil, err
	}
	p := &planner{Repository: r, options: o, loader: loader, next: *r.Subscription, renames: map[string]string{}}
	p.next.Conventions = slices.Clone(r.Subscription.Conventions)
	p.next.Parameters = map[string]any{}
	maps.Copy(p.next.Parameters, r.Subscription.Parameters)
	err = p.applyTarget()
	for i := 0; err == nil && i < len(p.next.Conventions); i++ {
		err = p.loadConvention(ctx, i)
	}
	if err == nil {
		err = p.setParameters()
	}
	if err != nil {
		return nil, err
	}
	return p.buildProposal(ctx)
}

// planner builds one proposal.
type planner struct {
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

// applyTarget sets the version and source of the options in one convention of the next subscription; without them, it
// changes nothing. A source in a registry gets the version as its tag.
func (p *planner) applyTarget() error {
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

// loadConvention loads the i-th convention, in its newest version unless the subscription or the options choose a
// version, and pins the loaded version in the next subscription. If the registry cannot be reached, it keeps the
// pinned version and adds a note. A lower version than in the lock is an error, unless the options request it.
func (p *planner) loadConvention(ctx context.Context, i int) error {
	use := p.next.Conventions[i]
	locked := p.Lock.Convention(use.Name)
	isTarget := p.options.Convention == use.Name && (p.options.To != "" || p.options.Source != "")
	requested := use
	// The user did not choose a version in the subscription: the entry is equal to the lock, or only the
	// source differs.
	isAsRendered := locked != nil && (locked.Use == use || locked.Source != use.Source && locked.Digest == use.Digest)
	if !isTarget && (isAsRendered || !strings.HasPrefix(use.Source, subscription.OCI)) {
		// Load the current version of the source, also if the user changed the source in the subscription.
		requested.Digest, requested.Version = "", ""
	}
	found, err := p.loader.Load(ctx, requested, locked)
	if errors.Is(err, oci.ErrUnreachable) && use.Digest != "" && requested.Digest == "" {
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
	p.recordVersion(found, locked)
	return nil
}

// isLower reports whether both versions are valid and a is lower than b.
func isLower(a, b string) bool {
	versionA, errA := semver.Parse(a)
	versionB, errB := semver.Parse(b)
	return errA == nil && errB == nil && versionA.LT(versionB)
}

// recordVersion records a new convention, or the change of a convention's version or content, for the commit message.
// If the version changes, it applies the migrations since the locked version and records their notes.
func (p *planner) recordVersion(found *source.Loaded, locked *subscription.Locked) {
	switch {
	case locked == nil:
		p.versions = append(p.versions, fmt.Sprintf("%s %s", found.Name, found.Version))
	case locked.Version != found.Version:
		p.versions = append(p.versions, fmt.Sprintf("%s %s to %s", found.Name, locked.Version, found.Version))
		for _, m := range found.MigrationsSince(locked.Version) {
			p.applyMigration(m)
			for _, note := range m.Notes {
				p.changelog = append(p.changelog, fmt.Sprintf("%s %s: %s", found.Name, m.To, note))
			}
		}
	case locked.Digest != found.Use.Digest:
		p.versions = append(p.versions, fmt.Sprintf("%s %s with another content", found.Name, found.Version))
	}
}

// applyMigration applies the migration to one version: it adds renamed files, and renames and sets parameters. The
// renames refer to the names before this version. A parameter that already has a value is not set.
func (p *planner) applyMigration(m convention.Migration) {
	renames, parameters := maps.Clone(p.renames), maps.Clone(p.next.Parameters)
	maps.Copy(p.renames, m.Rename)
	for from, to := range renames { // a file that an earlier migration renamed can be renamed again
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

// setParameters sets the parameters of the options. It returns an error for unknown parameters and for missing values.
func (p *planner) setParameters() error {
	defined := convention.Parameters(p.conventions)
	for name, text := range p.options.Set {
		p.next.Parameters[name] = text
		if parameter, ok := defined[name]; ok {
			value, err := parameter.Parse(text)
			if err != nil {
				return err
			}
			p.next.Parameters[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.next.Parameters)) {
		if _, ok := defined[name]; !ok {
			return fmt.Errorf("%w: no convention has a parameter %s", convention.ErrInvalid, name)
		}
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(defined)) {
		if _, ok := p.next.Parameters[name]; !ok && defined[name].Default == nil {
			missing = append(missing, fmt.Sprintf("%s (%s)", name, defined[name].Description))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: %s", ErrParameters, strings.Join(missing, ", "))
	}
	return nil
}

// buildProposal renders the conventions and plans the changes.
func (p *planner) buildProposal(ctx context.Context) (*Proposal, error) {
	wanted, err := convention.Render(p.conventions, p.next.Parameters)
	if err != nil {
		return nil, err
	}
	current, err := p.Tree.ReadAll(update.ListPaths(p.Lock, wanted, p.renames))
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
	return p.newProposal(plan, text, "Update boilerplate", p.versions, p.changelog)
}

// newProposal adds the program's own files and the commit message to a plan. text is the text of the subscription; nil
// if the repository ends all subscriptions. A title of more than 72 bytes is cut.
func (r *Repository) newProposal(plan *update.Plan, text []byte, title string, versions, changelog []string) (*Proposal,
	error) {
	changes, err := r.Tree.ListChanges(plan, text, r.Lock)
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
	p.Message = title + "\n" + formatSection("Conventions", versions) + formatSection("What is new", changelog) +
		formatSection("Changes", lines) + formatSection("Left as it is", plan.Notes)
	return p, nil
}

// formatSection returns a section of the commit message; empty if there are no lines.
func formatSection(heading string, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return "\n" + heading + ":\n- " + strings.Join(lines, "\n- ") + "\n"
}

// Result is the result of an update.
type Result struct {
	Commit    string   // the short name of the commit; empty if there is none
	Conflicts []string // files with conflicts that the user must resolve; in this case there is no commit
}

// Apply writes a proposal, and commits it if commit is true. Before it writes any file, it checks that the folder is in
// a git repository, and that no uncommitted changes could be lost or mixed with the update. Otherwise the error wraps
// repository.ErrNotRepository or repository.ErrDirty.
func (r *Repository) Apply(ctx context.Context, p *Proposal, commit bool) (Result, error) {
	git, err := repository.OpenGit(ctx, r.Tree.Dir)
	if err == nil { // users edit the subscription before an update
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

// Continue continues an update in progress: it writes the remaining files, and commits after all conflicts are
// resolved. If it writes files with conflicts, it returns their paths without an error; if conflicts remain in files
// that were written earlier, the error wraps ErrConflicts.
func (r *Repository) Continue(ctx context.Context) (Result, error) {
	git, err := repository.OpenGit(ctx, r.Tree.Dir)
	if err != nil {
		return Result{}, err
	}
	conflicts := update.ListConflicts(r.Journal.Changes)
	if !r.Journal.Applied {
		if err := r.Tree.Apply(r.Journal); err != nil || len(conflicts) > 0 {
			return Result{Conflicts: conflicts}, err
		}
	}
	files, err := r.Tree.ReadAll(conflicts)
	if err != nil {
		return Result{}, err
	}
	maps.DeleteFunc(files, func(_ string, f *update.File) bool { return update.FindConflictLine(f.Text) == 0 })
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

// Eject plans the end of the subscription to a convention, or to all conventions if name is empty. The files stay.
func (r *Repository) Eject(name string) (*Proposal, error) {
	if r.Lock == nil {
		return nil, fmt.Errorf("%w: nothing was rendered yet", ErrNotSubscribed)
	}
	current, err := r.Tree.ReadAll(update.ListPaths(r.Lock, nil, nil))
	if err != nil {
		return nil, err
	}
	next, err := r.removeConvention(name)
	if err != nil {
		return nil, err
	}
	plan := update.Eject(r.Lock, r.Base, current, name)
	plan.Lock.Parameters = next.Parameters
	if name == "" || len(next.Conventions) == 0 {
		return r.newProposal(plan, nil, "Eject all boilerplate", nil, nil)
	}
	text, err := next.Write(r.Text)
	if err != nil {
		return nil, err
	}
	return r.newProposal(plan, text, "Eject boilerplate of convention "+name, nil, nil)
}

// removeConvention returns the subscription without a convention and without the parameters that only this convention
// has. It is an error if another convention requires this convention. An empty name keeps all conventions.
func (r *Repository) removeConvention(name string) (*subscription.Subscription, error) {
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
