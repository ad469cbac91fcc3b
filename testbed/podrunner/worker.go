// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package podrunner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/bellwether-dev/bellwether/testbed/podrunner/plan"
	"github.com/bellwether-dev/bellwether/testbed/podrunner/volume"
)

const (
	// retryPeriod is the wait after something of a pod could not be done.
	retryPeriod = time.Second
	// volumeRefresh is how often volumes are compared with their objects.
	volumeRefresh = 5 * time.Second
	// shutdownGrace bounds how long the end of the runner waits for a process.
	shutdownGrace = 5 * time.Second
)

// worker runs one pod.
type worker struct {
	r       *runner
	dir     string
	volumes *volume.Volumes
	started metav1.Time
	changed chan struct{} // holds one signal: the status may have changed
	stop    context.CancelFunc
	stopCtx context.Context // ends when the pod is to end
	now     chan struct{}   // closed when there is no grace any more
	nowOnce sync.Once

	containers []*container // init containers first; not changed after newWorker
	stub       bool

	mu       sync.Mutex
	pod      *corev1.Pod // the newest seen, not to be modified
	gone     bool        // the object does not exist any more
	address  string
	statuses []plan.Container // of containers, by index
	reported *corev1.PodStatus
}

func newWorker(r *runner, pod *corev1.Pod) *worker {
	dir := filepath.Join(r.podsDir(), podFolder(pod))
	w := &worker{
		r: r, dir: dir, pod: pod, started: metav1.Now(),
		volumes: volume.New(r.src, dir, filepath.Join(r.opts.Dir, "claims")),
		changed: make(chan struct{}, 1), now: make(chan struct{}),
	}
	w.stopCtx, w.stop = context.WithCancel(context.Background())
	if pod.Status.StartTime != nil {
		w.started = *pod.Status.StartTime
	}
	for i := range pod.Spec.InitContainers {
		w.add(&pod.Spec.InitContainers[i], true)
	}
	for i := range pod.Spec.Containers {
		w.add(&pod.Spec.Containers[i], false)
	}
	if pod.DeletionTimestamp != nil {
		w.stop() // of a run before this one; nothing of it is left
	}
	return w
}

// add takes in one container; a single unknown image makes the pod a stub.
func (w *worker) add(spec *corev1.Container, init bool) {
	image, known := w.r.opts.Images.Lookup(spec.Image)
	w.stub = w.stub || !known
	policy := plan.Policy(w.pod, spec, init)
	status, done := plan.Adopted(policy, previousStatus(w.pod, spec.Name), metav1.Now())
	status.Name, status.Image = spec.Name, spec.Image
	if !done {
		status.State = plan.Waiting("PodInitializing", "")
		if !image.Missing {
			status.ImageID = "process://" + image.Path
		}
	}
	w.statuses = append(w.statuses, plan.Container{
		ContainerStatus: status, Init: init, Sidecar: init && policy == corev1.RestartPolicyAlways,
	})
	w.containers = append(w.containers, &container{
		w: w, index: len(w.containers), spec: spec, image: image, policy: policy, done: done && !init,
	})
}

func previousStatus(pod *corev1.Pod, name string) corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, s := range list {
			if s.Name == name {
				return s
			}
		}
	}
	return corev1.ContainerStatus{}
}

// update takes a newer version of the pod.
func (w *worker) update(pod *corev1.Pod) {
	w.mu.Lock()
	w.pod = pod
	w.mu.Unlock()
	if pod.DeletionTimestamp != nil {
		if pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0 {
			w.nowOnce.Do(func() { close(w.now) })
		}
		w.stop()
	}
}

// kill ends a pod whose object is gone.
func (w *worker) kill() {
	w.mu.Lock()
	w.gone = true
	w.mu.Unlock()
	w.nowOnce.Do(func() { close(w.now) })
	w.stop()
}

// run lives as long as the pod does. When ctx ends, the processes are ended
// and the object is left as it is, for the next run.
func (w *worker) run(ctx context.Context) {
	log := klog.FromContext(ctx).WithValues("pod", klog.KObj(w.current()))
	ctx = klog.NewContext(ctx, log)
	defer w.r.addresses.release(w.current().UID)

	live, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.stopCtx, cancel)()

	ended := make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() { w.report(ctx, ended) })
	if w.stopCtx.Err() == nil {
		if err := w.live(live); err != nil && live.Err() == nil {
			log.Error(err, "Pod given up")
		}
	}
	close(ended)
	reporting.Wait()
	select {
	case <-ctx.Done():
		return
	case <-w.stopCtx.Done():
	}
	w.remove(ctx)
}

// live runs the containers to their end.
func (w *worker) live(ctx context.Context) error {
	if !w.takeAddress(ctx) {
		return ctx.Err()
	}
	if w.stub {
		return w.pretend(ctx)
	}
	if !w.mount(ctx) {
		return ctx.Err()
	}
	// Sidecars outlive the main containers.
	sidecars, stopSidecars := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	defer running.Wait()
	defer stopSidecars()
	running.Go(func() { w.refreshVolumes(sidecars) })
	var mains sync.WaitGroup
	defer mains.Wait()
	for i, c := range w.containers {
		switch status := w.status(i); {
		case status.Sidecar:
			running.Go(func() { c.run(sidecars) })
			if !c.waitStarted(ctx) {
				return ctx.Err()
			}
		case status.Init:
			if ok := c.run(ctx); !ok {
				return nil
			}
		default:
			mains.Go(func() { c.run(ctx) })
		}
	}
	mains.Wait()
	w.r.addresses.release(w.current().UID)
	return nil
}

// takeAddress waits for an address; it reports whether there is one.
func (w *worker) takeAddress(ctx context.Context) bool {
	return w.retry(ctx, "FailedCreatePodSandBox", func() error {
		pod := w.current()
		addr, err := w.r.addresses.take(pod.UID, pod.Status.PodIP)
		if err != nil {
			return err
		}
		w.mu.Lock()
		w.address = addr.String()
		w.mu.Unlock()
		w.notify()
		return nil
	})
}

// mount waits until all volumes are there; it reports whether they are.
func (w *worker) mount(ctx context.Context) bool {
	return w.retry(ctx, "FailedMount", func() error {
		for _, name := range []string{"home", "tmp"} {
			if err := os.MkdirAll(filepath.Join(w.dir, name), 0o700); err != nil {
				return fmt.Errorf("make folder: %w", err)
			}
		}
		return w.volumes.Sync(ctx, w.current())
	})
}

// refreshVolumes follows the objects that volumes come from. A missing object
// leaves the files as they are, as a kubelet does.
func (w *worker) refreshVolumes(ctx context.Context) {
	ticker := time.NewTicker(volumeRefresh)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := w.volumes.Sync(ctx, w.current()); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Volumes not refreshed")
			}
		}
	}
}

// retry calls f until it succeeds, with an Event for each new error. It
// reports false when ctx ended first.
func (w *worker) retry(ctx context.Context, reason string, f func() error) bool {
	last := ""
	for {
		err := f()
		if err == nil {
			return true
		}
		if ctx.Err() == nil && err.Error() != last {
			last = err.Error()
			w.event(corev1.EventTypeWarning, reason, last)
		}
		if !wait(ctx, retryPeriod) {
			return false
		}
	}
}

// grace returns how long a process may take to end once the pod has to.
func (w *worker) grace(ctx context.Context) time.Duration {
	pod := w.current()
	grace := specGrace(pod)
	if pod.DeletionGracePeriodSeconds != nil {
		grace = time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
	}
	if w.stopCtx.Err() == nil && ctx.Err() != nil { // the runner ends, not the pod
		grace = min(grace, shutdownGrace)
	}
	return grace
}

func specGrace(pod *corev1.Pod) time.Duration {
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return 30 * time.Second
}

func (w *worker) current() *corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pod
}

// addressed returns the pod as its containers are to see it, with the address
// even before the API server knows it.
func (w *worker) addressed() *corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	pod := *w.pod
	pod.Status.PodIP = w.address
	pod.Status.HostIP = w.r.addresses.node.String()
	return &pod
}

func (w *worker) status(index int) plan.Container {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.statuses[index]
}

// set changes the status of one container and has it reported.
func (w *worker) set(index int, change func(*corev1.ContainerStatus)) {
	w.mu.Lock()
	change(&w.statuses[index].ContainerStatus)
	w.mu.Unlock()
	w.notify()
}

func (w *worker) notify() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *worker) event(kind, reason, message string) {
	w.r.recorder.Event(w.current(), kind, reason, message)
}

// wait reports false when ctx ended before d was over.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

var errGone = errors.New("pod is gone")
