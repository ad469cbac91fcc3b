// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package podrunner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gopkg.in/natefinch/lumberjack.v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/bellwether-dev/bellwether/testbed/podrunner/child"
	"github.com/bellwether-dev/bellwether/testbed/podrunner/plan"
	"github.com/bellwether-dev/bellwether/testbed/podrunner/probe"
)

// maxLogMegabytes bounds a container's log; one older file of the size is kept.
const maxLogMegabytes = 10

// errImage says that the image of a container cannot be pulled.
var errImage = errors.New("not found")

// container runs one container of a pod.
type container struct {
	w      *worker
	index  int // in the worker's lists
	spec   *corev1.Container
	image  Image
	policy corev1.RestartPolicy
	done   bool // ended in an earlier run, and not to be started again
}

// run starts the program, and starts it again as the policy says. It returns
// when the container is over or ctx ends, and reports whether it succeeded.
func (c *container) run(ctx context.Context) bool {
	if c.done {
		ended := c.w.status(c.index).State.Terminated
		return ended != nil && ended.ExitCode == 0
	}
	log := &lumberjack.Logger{Filename: c.logFile(), MaxSize: maxLogMegabytes, MaxBackups: 1}
	defer func() {
		if err := log.Close(); err != nil {
			klog.FromContext(ctx).Error(err, "Log not closed", "container", c.spec.Name)
		}
	}()
	if _, err := log.Write(nil); err != nil { // a silent program has a log, too
		klog.FromContext(ctx).Error(err, "Log not opened", "container", c.spec.Name)
	}
	for backoff := time.Duration(0); ; {
		began := time.Now()
		code, err := c.once(ctx, log)
		if ctx.Err() != nil {
			return false
		}
		if err == nil && !plan.Restart(c.policy, code) {
			return code == 0
		}
		backoff = plan.Backoff(backoff, time.Since(began))
		c.waiting(ctx, err, backoff)
		if !wait(ctx, backoff) {
			return false
		}
		if err == nil {
			c.w.set(c.index, func(s *corev1.ContainerStatus) { s.RestartCount++ })
		}
	}
}

// waiting says why the container does not run: it could not be started (err),
// or it ended and waits for its next start.
func (c *container) waiting(ctx context.Context, err error, backoff time.Duration) {
	reason := "RunContainerError"
	switch {
	case errors.Is(err, errImage):
		reason = "ErrImagePull"
	case errors.Is(err, plan.ErrConfig):
		reason = "CreateContainerConfigError"
	}
	c.w.set(c.index, func(s *corev1.ContainerStatus) {
		if err != nil {
			s.State = plan.Waiting(reason, err.Error())
			return
		}
		s.LastTerminationState = s.State
		s.State = plan.CrashLoop(c.spec, c.w.pod, backoff)
	})
	if err != nil {
		klog.FromContext(ctx).Error(err, "Container not started", "container", c.spec.Name)
		c.w.event(corev1.EventTypeWarning, "Failed", err.Error())
		return
	}
	c.w.event(corev1.EventTypeWarning, "BackOff", "back-off restarting failed container "+c.spec.Name)
}

// once runs the program to its end and returns its exit code; an error means
// that it never ran.
func (c *container) once(ctx context.Context, log io.Writer) (int32, error) {
	command, err := c.command(ctx)
	if err != nil {
		return 0, err
	}
	tail := &tail{}
	command.Output = io.MultiWriter(log, tail)
	process, err := child.Start(command)
	if err != nil {
		return 0, err
	}
	started := metav1.Now()
	id := fmt.Sprintf("process://%d-%d", process.PID(), started.UnixNano())
	c.w.set(c.index, func(s *corev1.ContainerStatus) {
		s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}}
		s.ContainerID = id
		s.Started, s.Ready = ptr.To(c.spec.StartupProbe == nil), c.spec.StartupProbe == nil &&
			c.spec.ReadinessProbe == nil
	})
	c.w.event(corev1.EventTypeNormal, "Started", "started container "+c.spec.Name)
	c.supervise(ctx, process, command)

	code := process.ExitCode()
	ended := &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: "Completed", StartedAt: started, FinishedAt: metav1.Now(), ContainerID: id,
	}
	if code != 0 {
		ended.Reason, ended.Message = "Error", tail.String()
	}
	c.w.set(c.index, func(s *corev1.ContainerStatus) {
		s.State = corev1.ContainerState{Terminated: ended}
		s.Started, s.Ready = ptr.To(false), false
	})
	return code, nil
}

// supervise returns when the process has ended: by itself, because a probe
// wants it restarted, or because ctx ended.
func (c *container) supervise(ctx context.Context, process *child.Child, command child.Command) {
	probing, stopProbing := context.WithCancel(ctx)
	unhealthy := make(chan error, 1)
	go func() {
		if err := c.probe(probing, c.target(command)); err != nil && probing.Err() == nil {
			unhealthy <- err
		}
	}()
	defer stopProbing()
	select {
	case <-process.Done():
	case err := <-unhealthy:
		c.w.event(corev1.EventTypeWarning, "Killing",
			fmt.Sprintf("container %s will be restarted: %v", c.spec.Name, err))
		process.Stop(specGrace(c.w.current()), c.w.now)
	case <-ctx.Done():
		// A container that is on its way out takes no more requests.
		c.w.set(c.index, func(s *corev1.ContainerStatus) { s.Ready = false })
		process.Stop(c.w.grace(ctx), c.w.now)
	}
}

// command resolves what to run. Errors of the pod's author wrap plan.ErrConfig.
func (c *container) command(ctx context.Context) (child.Command, error) {
	if c.image.Missing {
		return child.Command{}, fmt.Errorf("failed to pull image %q: %w", c.spec.Image, errImage)
	}
	pod := c.w.addressed()
	src, err := c.w.r.src.environmentSources(ctx, pod.Namespace, c.spec)
	if err != nil {
		return child.Command{}, fmt.Errorf("read environment: %w", err)
	}
	vars, err := plan.Environment(pod, c.spec, src)
	if err != nil {
		return child.Command{}, err
	}
	mounts := plan.NewMounts(c.spec, func(name string) string { return c.w.volumes.Dir(pod, name) })
	kubeconfig, err := c.w.r.api.writeKubeconfig(pod, c.w.dir, mounts)
	if err != nil {
		return child.Command{}, err
	}
	values := map[string]string{}
	env := c.baseEnv(pod, kubeconfig)
	for _, v := range vars {
		values[v.Name] = v.Value
		env = append(env, v.Name+"="+mounts.Rewrite(v.Value))
	}
	return child.Command{
		Path: c.image.Path,
		Args: plan.Arguments(c.spec, values, mounts),
		Env:  env,
		Dir:  c.w.dir,
	}, nil
}

// baseEnv is what every process gets; the pod's own variables come after it
// and win. Nothing else of the runner's environment is handed on.
func (c *container) baseEnv(pod *corev1.Pod, kubeconfig string) []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + filepath.Join(c.w.dir, "home"),
		"TMPDIR=" + filepath.Join(c.w.dir, "tmp"),
		"HOSTNAME=" + pod.Name,
		"POD_IP=" + pod.Status.PodIP,
	}
	if kubeconfig != "" {
		env = append(env, "KUBECONFIG="+kubeconfig)
	}
	return env
}

// target is the container as its probes see it.
func (c *container) target(command child.Command) probe.Target {
	return probe.Target{
		Host:  c.w.addressed().Status.PodIP,
		Ports: c.spec.Ports,
		Exec: func(ctx context.Context, args []string) error {
			return c.exec(ctx, command, args)
		},
	}
}

// exec runs a command beside the container. The container's own program is
// meant where the command names it as the container does.
func (c *container) exec(ctx context.Context, command child.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("command is empty")
	}
	if len(c.spec.Command) == 0 || args[0] != c.spec.Command[0] {
		command.Path = args[0]
	}
	output := &tail{}
	command.Args, command.Output = args[1:], output
	process, err := child.Start(command)
	if err != nil {
		return err
	}
	select {
	case <-process.Done():
	case <-ctx.Done():
		process.Stop(0, nil)
		return ctx.Err()
	}
	if code := process.ExitCode(); code != 0 {
		return fmt.Errorf("command ended with code %d: %s", code, output)
	}
	return nil
}

// waitStarted reports whether the container has started before ctx ended.
func (c *container) waitStarted(ctx context.Context) bool {
	const poll = 50 * time.Millisecond
	for {
		if s := c.w.status(c.index); s.Started != nil && *s.Started {
			return true
		}
		if !wait(ctx, poll) {
			return false
		}
	}
}

func (c *container) logFile() string {
	pod := c.w.current()
	return filepath.Join(c.w.r.opts.Dir, strings.Join([]string{pod.Namespace, pod.Name, c.spec.Name}, "_")+".log")
}
