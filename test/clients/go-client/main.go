// A program on client-go, in a pod, with the token of its service account: go-client NAMESPACE IMAGE. Prints a line for each step.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/httpstream"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"
)

const patience = 90 * time.Second

var (
	namespace = os.Args[1]
	image     = os.Args[2]
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	config, err := rest.InClusterConfig()
	check("the configuration in a cluster", err)
	// Typed clients of operators send protobuf and accept both.
	typed := rest.CopyConfig(config)
	typed.ContentType = "application/vnd.kubernetes.protobuf"
	typed.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	clients, err := kubernetes.NewForConfig(typed)
	check("the typed clients", err)

	discover(clients)
	pods := watchPods(ctx, clients)
	runPod(ctx, clients, pods, "first")
	step("informer")
	readLog(ctx, clients)
	execute(ctx, config, clients)
	forward(config, clients)
	apply(ctx, clients)
	useDynamic(ctx, config)
	recordEvent(ctx, clients)
	elect(ctx, clients)
	evict(ctx, clients, pods)
	fmt.Println("end")
}

func step(name string) { fmt.Println(name) }

func check(what string, err error) {
	if err == nil {
		return
	}
	fmt.Printf("failed: %s: %v\n", what, err)
	os.Exit(1)
}

func expect(what string, holds bool, found ...any) {
	if !holds {
		check(what, fmt.Errorf("found %v", found))
	}
}

func discover(clients kubernetes.Interface) {
	version, err := clients.Discovery().ServerVersion()
	check("the version", err)
	expect("the version", strings.HasPrefix(version.GitVersion, "v1."), version.GitVersion)
	_, lists, err := clients.Discovery().ServerGroupsAndResources()
	check("discovery", err)
	expect("resources of several groups", len(lists) > 5, len(lists))
	groups, err := restmapper.GetAPIGroupResources(clients.Discovery())
	check("the groups of the mapper", err)
	mapping, err := restmapper.NewDiscoveryRESTMapper(groups).RESTMapping(schema.GroupKind{Group: "policy", Kind: "PodDisruptionBudget"})
	check("the mapping of a kind", err)
	expect("the resource of a kind", mapping.Resource.Resource == "poddisruptionbudgets", mapping.Resource)
	_, err = clients.Discovery().OpenAPIV3().Paths()
	check("OpenAPI v3", err)
	_, err = clients.Discovery().OpenAPISchema()
	check("OpenAPI v2", err)
	step("discovery")
}

type podEvents struct {
	running chan string
	deleted chan string
}

func watchPods(ctx context.Context, clients kubernetes.Interface) podEvents {
	events := podEvents{running: make(chan string, 100), deleted: make(chan string, 100)}
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().Pods().Informer()
	isReady := func(pod *corev1.Pod) bool {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady {
				return condition.Status == corev1.ConditionTrue
			}
		}
		return false
	}
	changed := func(object any) {
		if pod := object.(*corev1.Pod); isReady(pod) {
			select {
			case events.running <- pod.Name:
			default:
			}
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, object any) { changed(object) },
		DeleteFunc: func(object any) {
			name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
			if err == nil {
				events.deleted <- name
			}
		},
	})
	check("the handler of the informer", err)
	factory.Start(ctx.Done())
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for kind, synced := range factory.WaitForCacheSync(limited.Done()) {
		expect("an informer that is synced", synced, kind)
	}
	return events
}

func await(what string, names <-chan string, wanted string) {
	late := time.After(patience)
	for {
		select {
		case name := <-names:
			if name == wanted {
				return
			}
		case <-late:
			check(what, fmt.Errorf("not within %s", patience))
		}
	}
}

func runPod(ctx context.Context, clients kubernetes.Interface, pods podEvents, name string) {
	grace := int64(1)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{
				Name: "main", Image: image, Command: []string{"sh", "-c", "echo started; exec nc -ll -p 8080 -e cat"},
			}},
		},
	}
	created, err := clients.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	check("a pod", err)
	expect("the phase of a new pod", created.Status.Phase == corev1.PodPending, created.Status.Phase)
	await("the pod is Ready", pods.running, name)
}

func readLog(ctx context.Context, clients kubernetes.Interface) {
	text, err := clients.CoreV1().Pods(namespace).GetLogs("first", &corev1.PodLogOptions{}).DoRaw(ctx)
	check("the log", err)
	expect("the log", string(text) == "started\n", string(text))
	step("log")
}

func execute(ctx context.Context, config *rest.Config, clients kubernetes.Interface) {
	request := clients.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name("first").SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Command: []string{"sh", "-c", "cat; echo problem >&2; exit 3"}, Stdin: true, Stdout: true, Stderr: true,
		}, scheme.ParameterCodec)
	webSocket, err := remotecommand.NewWebSocketExecutor(config, "GET", request.URL().String())
	check("the executor on WebSocket", err)
	overSPDY, err := remotecommand.NewSPDYExecutor(config, "POST", request.URL())
	check("the executor on SPDY", err)
	fallback, err := remotecommand.NewFallbackExecutor(webSocket, overSPDY, httpstream.IsUpgradeFailure)
	check("the executor with a fallback", err)
	for protocol, executor := range map[string]remotecommand.Executor{"WebSocket": webSocket, "SPDY": overSPDY, "a fallback": fallback} {
		var out, errOut bytes.Buffer
		err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{
			Stdin: strings.NewReader("to the container\n"), Stdout: &out, Stderr: &errOut,
		})
		var exited utilexec.CodeExitError
		expect("the exit code over "+protocol, errors.As(err, &exited) && exited.Code == 3, err)
		expect("the output over "+protocol, out.String() == "to the container\n" && errOut.String() == "problem\n", out.String(), errOut.String())
	}
	step("exec")
}

func forward(config *rest.Config, clients kubernetes.Interface) {
	url := clients.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name("first").SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(config)
	check("the transport of SPDY", err)
	overSPDY := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, "POST", url)
	tunnel, err := portforward.NewSPDYOverWebsocketDialer(url, config)
	check("the tunnel", err)
	for protocol, dialer := range map[string]httpstream.Dialer{"SPDY": overSPDY, "the tunnel": tunnel} {
		stop, ready := make(chan struct{}), make(chan struct{})
		forwarder, err := portforward.New(dialer, []string{"0:8080"}, stop, ready, io.Discard, os.Stdout)
		check("the forwarder over "+protocol, err)
		ended := make(chan error, 1)
		go func() { ended <- forwarder.ForwardPorts() }()
		select {
		case <-ready:
		case err := <-ended:
			check("the port over "+protocol, fmt.Errorf("ended: %w", err))
		case <-time.After(patience):
			check("the port over "+protocol, errors.New("not ready"))
		}
		ports, err := forwarder.GetPorts()
		check("the local port", err)
		for range 3 {
			connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", ports[0].Local))
			check("a connection", err)
			check("its deadline", connection.SetDeadline(time.Now().Add(patience)))
			_, err = connection.Write([]byte("through the port\n"))
			check("to the port", err)
			answer := make([]byte, len("through the port\n"))
			_, err = io.ReadFull(connection, answer)
			check("from the port over "+protocol, err)
			expect("what the port answers", string(answer) == "through the port\n", string(answer))
			connection.Close()
		}
		close(stop)
		check("the end over "+protocol, <-ended)
	}
	step("port-forward")
}

func apply(ctx context.Context, clients kubernetes.Interface) {
	maps := clients.CoreV1().ConfigMaps(namespace)
	with := func(data map[string]string) *coreapply.ConfigMapApplyConfiguration {
		return coreapply.ConfigMap("applied", namespace).WithData(data)
	}
	_, err := maps.Apply(ctx, with(map[string]string{"a": "1", "b": "1"}), metav1.ApplyOptions{FieldManager: "one"})
	check("an apply", err)
	_, err = maps.Apply(ctx, with(map[string]string{"a": "2"}), metav1.ApplyOptions{FieldManager: "other"})
	expect("a conflict", apierrors.IsConflict(err), err)
	_, err = maps.Apply(ctx, with(map[string]string{"a": "2"}), metav1.ApplyOptions{FieldManager: "other", Force: true})
	check("an apply by force", err)
	applied, err := maps.Apply(ctx, with(map[string]string{}), metav1.ApplyOptions{FieldManager: "one"})
	check("an apply without fields", err)
	expect("what is left", len(applied.Data) == 1 && applied.Data["a"] == "2", applied.Data)
	extracted, err := coreapply.ExtractConfigMap(applied, "other")
	check("the fields of a manager", err)
	expect("the fields of a manager", len(extracted.Data) == 1 && extracted.Data["a"] == "2", extracted.Data)
	step("server-side apply")
}

func useDynamic(ctx context.Context, config *rest.Config) {
	client, err := dynamic.NewForConfig(config)
	check("the dynamic client", err)
	maps := client.Resource(configMaps).Namespace(namespace)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "dynamic", "labels": map[string]any{"by": "dynamic"}},
	}}
	created, err := maps.Create(ctx, object, metav1.CreateOptions{})
	check("a dynamic create", err)
	stale := created.DeepCopy()
	check("a value", unstructured.SetNestedField(created.Object, "1", "data", "a"))
	_, err = maps.Update(ctx, created, metav1.UpdateOptions{})
	check("a dynamic update", err)
	_, err = maps.Update(ctx, stale, metav1.UpdateOptions{})
	expect("an update of an old version", apierrors.IsConflict(err), err)
	metadataClient, err := metadata.NewForConfig(config)
	check("the client of metadata", err)
	partial, err := metadataClient.Resource(configMaps).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: "by=dynamic", Limit: 1})
	check("a list of metadata", err)
	expect("a list of metadata", len(partial.Items) == 1 && partial.Items[0].Name == "dynamic", partial.Items)
	watcher, err := maps.Watch(ctx, metav1.ListOptions{LabelSelector: "by=dynamic", ResourceVersion: stale.GetResourceVersion()})
	check("a watch", err)
	defer watcher.Stop()
	check("a dynamic deletion", maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "by=dynamic"}))
	types := []string{}
	for event := range watcher.ResultChan() {
		types = append(types, string(event.Type))
		if event.Type == "DELETED" {
			break
		}
	}
	expect("the events of the watch", strings.Join(types, " ") == "MODIFIED DELETED", types)
	step("dynamic client")
}

func recordEvent(ctx context.Context, clients kubernetes.Interface) {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: clients.CoreV1().Events(namespace)})
	defer broadcaster.Shutdown()
	pod, err := clients.CoreV1().Pods(namespace).Get(ctx, "first", metav1.GetOptions{})
	check("the pod", err)
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "go-client"})
	// The second one is a patch of the first.
	for range 2 {
		recorder.Event(pod, corev1.EventTypeNormal, "Tested", "By a program")
	}
	for start := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		events, err := clients.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=Tested"})
		check("the Events", err)
		if len(events.Items) == 1 && events.Items[0].Count == 2 {
			break
		}
		expect("one Event that counts two", time.Since(start) < patience, events.Items)
	}
	step("events")
}

func elect(ctx context.Context, clients kubernetes.Interface) {
	led := make(chan string, 2)
	candidate := func(identity string) (context.CancelFunc, chan struct{}) {
		lock := &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: "leader", Namespace: namespace},
			Client:     clients.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		}
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 500 * time.Millisecond, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { led <- identity },
				OnStoppedLeading: func() {},
			},
		})
		check("the elector", err)
		limited, cancel := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			elector.Run(limited)
			close(ended)
		}()
		return cancel, ended
	}
	stopOne, oneEnded := candidate("one")
	await("the first leader", led, "one")
	stopOther, otherEnded := candidate("other")
	stopOne()
	<-oneEnded
	await("the second leader", led, "other")
	stopOther()
	<-otherEnded
	step("leader election")
}

func evict(ctx context.Context, clients kubernetes.Interface, pods podEvents) {
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "first", Namespace: namespace}}
	check("an eviction", clients.PolicyV1().Evictions(namespace).Evict(ctx, eviction))
	await("the pod is deleted", pods.deleted, namespace+"/first")
	_, err := clients.CoreV1().Pods(namespace).Get(ctx, "first", metav1.GetOptions{})
	expect("an error for the pod that is gone", apierrors.IsNotFound(err), err)
	_, err = clients.CoreV1().Secrets("kube-system").List(ctx, metav1.ListOptions{})
	expect("a refusal outside of the namespace", apierrors.IsForbidden(err), err)
	step("eviction")
}
