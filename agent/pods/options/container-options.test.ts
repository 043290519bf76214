import { test } from 'tap'
import { qosClassOf } from '../../../api/pod/qos-class.ts'
import type { Container } from '../../../api/pod.ts'
import { aPod } from '../../../api/testing/builders.ts'
import type { ContainerOptions } from '../../runtime/runtime.ts'
import { containerEnv } from './container-env.ts'
import { containerOptions, hostPorts, sandboxOptions } from './container-options.ts'
import { expand } from './expansion.ts'
import { oomScoreAdj } from './qos.ts'

const GiB = 1024 ** 3
const needs = {
  hostIP: '192.0.2.1',
  podIP: '10.1.0.5',
  configMaps: [],
  secrets: [],
  allocatable: { cpu: '4', memory: '3Gi' },
  sandboxID: 'sandbox',
  mounts: [],
  devices: [],
  attempt: 3,
  memoryCapacityBytes: 4 * GiB,
}

function made(container: Partial<Container>, more: Partial<typeof needs> | object = {}): ContainerOptions {
  const whole = { name: 'main', image: 'app:1', ...container }
  const result = containerOptions(aPod({ name: 'web', labels: { app: 'shop' }, containers: [whole] }), whole, {
    ...needs,
    ...more,
  })
  if (!result.ok) throw new Error(result.message)
  return result.options
}

test('variables in commands and values are replaced as Kubernetes does', async (t) => {
  const values = new Map([
    ['A', 'one'],
    ['B', 'two'],
  ])
  t.equal(expand('$(A)-$(B)', values), 'one-two')
  t.equal(expand('$(C) $A $$(A) $$$(A) $(', values), '$(C) $A $(A) $one $(')
})

test('command and arguments stand where they are given', async (t) => {
  t.match(made({ command: ['/bin/$(X)'], args: ['-v'], env: [{ name: 'X', value: 'run' }] }), {
    command: ['/bin/run'],
    args: ['-v'],
  })
  t.match(made({ args: ['only'] }), { command: undefined, args: ['only'] })
  t.match(made({ command: [] }), { command: undefined, args: undefined })
})

test('the environment sees what stands before it, the pod, its ConfigMaps and its Secrets', async (t) => {
  const field = (fieldPath: string) => ({ valueFrom: { fieldRef: { fieldPath } } })
  const configMaps = [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'cm', namespace: 'default' }, data: { colour: 'red' } },
  ]
  const secrets = [
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's', namespace: 'default' }, data: { key: 'aGk=' } },
  ]
  const env = [
    { name: 'LATER', value: '$(FIRST)' },
    { name: 'FIRST', value: '1' },
    { name: 'SUM', value: '$(FIRST)+1' },
    { name: 'APP', ...field("metadata.labels['app']") },
    { name: 'IP', ...field('status.podIP') },
    { name: 'COLOUR', valueFrom: { configMapKeyRef: { name: 'cm', key: 'colour' } } },
    { name: 'KEY', valueFrom: { secretKeyRef: { name: 's', key: 'key' } } },
    { name: 'CORES', valueFrom: { resourceFieldRef: { resource: 'limits.cpu' } } },
    { name: 'MEMORY', valueFrom: { resourceFieldRef: { resource: 'requests.memory', divisor: '1Mi' } } },
    { name: 'SHARE', valueFrom: { resourceFieldRef: { resource: 'requests.cpu', divisor: '1m' } } },
    { name: 'NONE', valueFrom: { secretKeyRef: { name: 'absent', key: 'key', optional: true } } },
  ]
  const envFrom = [
    { prefix: 'CM_', configMapRef: { name: 'cm' } },
    { secretRef: { name: 's' } },
    { configMapRef: { name: 'absent', optional: true } },
  ]
  const resources = { requests: { cpu: '250m', memory: '100M' } }
  const options = made({ env, envFrom, resources }, { configMaps, secrets })
  t.same(Object.fromEntries(options.env.map(({ name, value }) => [name, value])), {
    CM_colour: 'red',
    key: 'hi',
    LATER: '$(FIRST)',
    FIRST: '1',
    SUM: '1+1',
    APP: 'shop',
    IP: '10.1.0.5',
    COLOUR: 'red',
    KEY: 'hi',
    CORES: '4',
    MEMORY: '96',
    SHARE: '250',
  })
})

test('the environment names the API, unless the container sets these variables itself', async (t) => {
  const apiServer = { host: '192.168.1.10', port: 6443 }
  const env = [
    { name: 'KUBERNETES_SERVICE_PORT', value: '443' },
    { name: 'API', value: 'https://$(KUBERNETES_SERVICE_HOST)' },
  ]
  const options = made({ env }, { apiServer })
  t.same(Object.fromEntries(options.env.map(({ name, value }) => [name, value])), {
    KUBERNETES_SERVICE_HOST: '192.168.1.10',
    KUBERNETES_SERVICE_PORT: '443',
    KUBERNETES_SERVICE_PORT_HTTPS: '6443',
    API: 'https://192.168.1.10',
  })
  t.same(made({}).env, [], 'without the location there is no variable')
})

test('variables of a container have the addresses of both IP families', async (t) => {
  const env = ['podIP', 'podIPs', 'hostIPs'].map((name) => ({
    name,
    valueFrom: { fieldRef: { fieldPath: `status.${name}` } },
  }))
  const options = made({ env }, { otherPodIP: 'fd00::5', otherHostIP: '2001:db8::1' })
  t.same(Object.fromEntries(options.env.map(({ name, value }) => [name, value])), {
    podIP: '10.1.0.5',
    podIPs: '10.1.0.5,fd00::5',
    hostIPs: '192.0.2.1,2001:db8::1',
  })
})

test('the environment has the Services of the namespace, unless the pod declines them', async (t) => {
  const services = [
    { namespace: 'default', name: 'web', clusterIP: '10.96.0.7', ports: [{ port: 80 }] },
    { namespace: 'other', name: 'db', clusterIP: '10.96.0.8', ports: [{ port: 5432 }] },
  ]
  const sources = { services, configMaps: [], secrets: [], hostIP: undefined, podIP: undefined, allocatable: {} }
  const names = (spec: object) => {
    const made = containerEnv(aPod({ spec }), { name: 'main', env: [{ name: 'WEB_PORT', value: 'own' }] }, sources)
    return made.ok ? Object.fromEntries(made.values) : made
  }
  t.match(names({}), { WEB_SERVICE_HOST: '10.96.0.7', WEB_SERVICE_PORT: '80', WEB_PORT: 'own' })
  t.notOk(Object.keys(names({ enableServiceLinks: true })).some((name) => name.startsWith('DB')))
  t.same(names({ enableServiceLinks: false }), { WEB_PORT: 'own' })
})

test('what the environment names must be there', async (t) => {
  const secrets = [{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's', namespace: 'default' }, data: {} }]
  const messageOf = (container: Partial<Container>) => {
    const whole = { name: 'main', ...container }
    const result = containerOptions(aPod({ containers: [whole] }), whole, { ...needs, secrets } as typeof needs)
    return result.ok ? undefined : result.message
  }
  const valueFrom = (from: object) => ({ env: [{ name: 'A', valueFrom: from }] })
  t.equal(messageOf(valueFrom({ configMapKeyRef: { name: 'cm', key: 'k' } })), 'configmap "cm" not found')
  t.equal(messageOf(valueFrom({ secretKeyRef: { name: 's', key: 'k' } })), "couldn't find key k in Secret default/s")
  t.equal(messageOf(valueFrom({ secretKeyRef: { name: 's', key: 'k', optional: true } })), undefined)
  t.equal(messageOf({ envFrom: [{ secretRef: { name: 'none' } }] }), 'secret "none" not found')
})

test('a value that Docker cannot pass on unchanged does not become a variable', async (t) => {
  const data = { bytes: 'cP93', nul: 'cAB3' }
  const secrets = [{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's', namespace: 'default' }, data }]
  const configMaps = [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c' }, data: { nul: 'p\0w' } }]
  const messageOf = (container: Partial<Container>) => {
    const whole = { name: 'main', ...container }
    const sources = { ...needs, secrets, configMaps } as typeof needs
    const pod = aPod({ containers: [whole] })
    const annotated = { ...pod, metadata: { ...pod.metadata, annotations: { text: 'p\0w' } } }
    const result = containerOptions(annotated, whole, sources)
    return result.ok ? undefined : result.message
  }
  const secretKey = (key: string) => ({ env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key } } }] })
  const notText = 'its value is not UTF-8 text, and Docker passes on text only; mount it as a file'
  const bytes = `key bytes in Secret default/s cannot be an environment variable: ${notText}`
  t.equal(messageOf(secretKey('bytes')), bytes)
  t.match(
    messageOf(secretKey('nul')),
    'key nul in Secret default/s cannot be an environment variable: its value has a NUL',
  )
  t.equal(messageOf({ envFrom: [{ secretRef: { name: 's' } }] }), bytes)
  const configMapKeyRef = { name: 'c', key: 'nul' }
  t.match(messageOf({ env: [{ name: 'A', valueFrom: { configMapKeyRef } }] }), 'key nul in ConfigMap default/c cannot')
  t.match(messageOf({ env: [{ name: 'A', value: 'p\0w' }] }), 'environment variable A has a NUL')
  const fieldRef = { fieldPath: "metadata.annotations['text']" }
  t.equal(
    messageOf({ env: [{ name: 'A', valueFrom: { fieldRef } }] }),
    "metadata.annotations['text'] cannot be environment variable A: its value has a NUL character; mount it as a file",
  )
  t.match(messageOf({ args: ['p\0w'] }), /^args\[0\] has a NUL character/)
})

test('cpu and memory become the kernel’s numbers', async (t) => {
  const both = made({
    resources: { requests: { cpu: '250m', memory: '64Mi' }, limits: { cpu: '1500m', memory: '128Mi' } },
  })
  t.match(both, {
    limits: { nanoCPUs: 1_500_000_000, memoryBytes: 128 * 1024 ** 2 },
    requests: { cpuShares: 256, memoryBytes: 64 * 1024 ** 2 },
  })
  t.match(made({}), { limits: { nanoCPUs: 0, memoryBytes: 0 }, requests: { cpuShares: 2, memoryBytes: 0 } })
  t.equal(made({ resources: { limits: { cpu: '2' } } }).requests.cpuShares, 2048, 'a limit alone is the request too')
})

test('quality of service decides which container is killed first', async (t) => {
  const pod = (requests?: { [name: string]: string }, limits?: { [name: string]: string }) =>
    aPod({ ...(requests ? { requests } : {}), ...(limits ? { limits } : {}) })
  const score = (one: ReturnType<typeof pod>) => oomScoreAdj(one, one.spec.containers[0] ?? { name: '' }, 4 * GiB)
  const all = { cpu: '1', memory: '1Gi' }
  t.same([qosClassOf(pod().spec), score(pod())], ['BestEffort', 1000])
  t.same([qosClassOf(pod(all, all).spec), score(pod(all, all))], ['Guaranteed', -997])
  t.same([qosClassOf(pod({ memory: '1Gi' }).spec), score(pod({ memory: '1Gi' }))], ['Burstable', 750])
  t.equal(qosClassOf(pod({ cpu: '500m', memory: '1Gi' }, all).spec), 'Burstable')
  t.equal(score(pod({ memory: '1' })), 999)
  t.equal(score(pod({ memory: '8Gi' })), 3)
})

test('the sandbox carries the name, the network and the ports', async (t) => {
  const ports = [
    { containerPort: 80, hostPort: 8080 },
    { containerPort: 53, hostPort: 53, protocol: 'UDP', hostIP: '192.0.2.1' },
    { containerPort: 9 },
  ]
  const pod = aPod({ name: `${'long-name-'.repeat(6)}abc-x`, containers: [{ name: 'main', ports }] })
  t.match(sandboxOptions(pod, 2), {
    hostname: `${'long-name-'.repeat(6)}abc`,
    hostNetwork: false,
    identity: { kind: 'sandbox', attempt: 2, podUID: pod.metadata.uid },
    ports: [
      { containerPort: 80, hostPort: 8080, protocol: 'TCP', hostIP: '' },
      { containerPort: 53, hostPort: 53, protocol: 'UDP', hostIP: '192.0.2.1' },
    ],
  })
  const onHost = aPod({ containers: [{ name: 'main', ports: [{ containerPort: 80 }] }], spec: { hostNetwork: true } })
  t.same(sandboxOptions(onHost, 0).ports, [], 'there is nothing to map')
  t.match(hostPorts(onHost), [{ hostPort: 80 }], 'but it takes the port')
})

test('the sandbox carries the hosts, the kernel settings, the IPC and the network of the pod', async (t) => {
  const hostAliases = [{ ip: '192.0.2.9', hostnames: ['nas', 'files.home'] }, { ip: '192.0.2.10' }]
  const sysctls = [{ name: 'net/ipv4/ip_forward', value: '1' }]
  const pod = aPod({ spec: { hostAliases, securityContext: { sysctls }, hostIPC: true } })
  t.match(sandboxOptions(pod, 0, { podCIDR: '10.244.0.0/24' }), {
    hosts: [
      { ip: '192.0.2.9', name: 'nas' },
      { ip: '192.0.2.9', name: 'files.home' },
    ],
    sysctls: { 'net.ipv4.ip_forward': '1' },
    hostIPC: true,
    podCIDR: '10.244.0.0/24',
  })
  const plain = sandboxOptions(aPod(), 0)
  t.same([plain.hosts, plain.sysctls, plain.hostIPC, plain.podCIDR], [[], {}, false, undefined])
  const onHost = sandboxOptions(aPod({ spec: { hostNetwork: true } }), 0, { podCIDR: '10.244.0.0/24' })
  t.same([onHost.hostNetwork, onHost.podCIDR], [true, undefined])
})

test('ports of the node are those of containers that last: sidecars, and no other init containers', async (t) => {
  const withPort = (name: string, hostPort?: number, protocol?: string) => ({
    name,
    ports: [
      { containerPort: 80, ...(hostPort !== undefined && { hostPort }), ...(protocol !== undefined && { protocol }) },
    ],
  })
  const initContainers = [{ ...withPort('proxy', 81), restartPolicy: 'Always' }, withPort('setup', 82)]
  const containers = [withPort('main', 83, 'SCTP'), withPort('inner'), withPort('zero', 0), { name: 'none' }]
  t.same(hostPorts(aPod({ containers, spec: { initContainers } })), [
    { containerPort: 80, hostPort: 81, protocol: 'TCP', hostIP: '' },
    { containerPort: 80, hostPort: 83, protocol: 'SCTP', hostIP: '' },
  ])
  t.same(hostPorts(aPod({ containers: [{ name: 'none' }] })), [])
})

test('a container is identified by its pod, with the grace period of the pod', async (t) => {
  const pod = aPod({ name: 'web', namespace: 'shop', spec: { terminationGracePeriodSeconds: 5 } })
  const identity = { podNamespace: 'shop', podName: 'web', podUID: pod.metadata.uid, gracePeriodSeconds: 5 }
  t.match(sandboxOptions(pod, 1).identity, { ...identity, kind: 'sandbox', containerName: '', specHash: '' })
  const { specHash, ...rest } = made({}).identity
  t.match(rest, { kind: 'container', podName: 'web', containerName: 'main', attempt: 3, gracePeriodSeconds: 30 })
  t.not(specHash, made({ image: 'app:2' }).identity.specHash, 'another specification is another container')
  const bare = { ...pod, metadata: {}, spec: { containers: [] } }
  t.match(sandboxOptions(bare, 0).identity, {
    podNamespace: 'default',
    podName: '',
    podUID: '',
    gracePeriodSeconds: 30,
  })
})

test('streams, image and limit of processes are what the pod and the node ask for', async (t) => {
  t.match(made({}), { image: 'app:1', tty: false, stdin: false, limits: { pids: 0 } })
  t.notOk('stdinOnce' in made({ stdinOnce: false }))
  t.match(made({ tty: true, stdin: true, stdinOnce: true }, { podPidsLimit: 100 }), {
    tty: true,
    stdin: true,
    stdinOnce: true,
    limits: { pids: 100 },
  })
})

test('processes and IPC are shared with the machine, the pod or a target, in this order', async (t) => {
  const sharing = (spec: object, processesOf?: string) => {
    const main = { name: 'main', image: 'app:1' }
    const result = containerOptions(aPod({ containers: [main], spec }), main, { ...needs, processesOf })
    if (!result.ok) throw new Error(result.message)
    const { hostPID, hostIPC, shareProcesses, processesOf: target } = result.options
    return { hostPID, hostIPC, shareProcesses, target }
  }
  const none = { hostPID: false, hostIPC: false, shareProcesses: undefined, target: undefined }
  t.same(sharing({}), none)
  t.same(sharing({ hostIPC: true }), { ...none, hostIPC: true })
  t.same(sharing({}, 'id'), { ...none, target: 'id' })
  t.same(sharing({ shareProcessNamespace: true }, 'id'), { ...none, shareProcesses: true })
  t.same(sharing({ hostPID: true }, 'id'), { ...none, hostPID: true })
  t.notOk('processesOf' in made({}))
})

test('a container that the kernel would not start has the reason instead of options', async (t) => {
  const args = [`${'x'.repeat(128 * 1024)}`]
  const main = { name: 'main', image: 'app:1', args }
  t.match(containerOptions(aPod({ containers: [main] }), main, needs), { ok: false, message: /argument/i })
  const securityContext = { runAsNonRoot: true, runAsUser: 0 }
  const asRoot = { name: 'main', image: 'app:1', securityContext }
  t.match(containerOptions(aPod({ containers: [asRoot] }), asRoot, needs), { ok: false, message: /root/ })
})

test('the sandbox and its containers have the runtime of their RuntimeClass, or that of the engine', async (t) => {
  t.equal(sandboxOptions(aPod(), 0, { handler: 'runsc' }).handler, 'runsc')
  t.equal(made({}, { handler: 'runsc' }).handler, 'runsc')
  t.notOk('handler' in sandboxOptions(aPod(), 0))
  t.notOk('handler' in made({}))
})
