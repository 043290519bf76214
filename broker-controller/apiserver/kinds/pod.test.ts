import { test } from 'tap'
import { decode } from '../../../api/decode.ts'
import { nodeIdentity } from '../../../api/identity.ts'
import type { Pod, Toleration } from '../../../api/pod.ts'
import { mirrorAnnotation, PodSchema } from '../../../api/pod.ts'
import { create, createdPod, createPod, pod, updatePod } from '../../testing/admitting.ts'
import { anApi, patchTypes } from '../../testing/api-in-memory.ts'

test('a new pod gets the defaults', async (t) => {
  const made = createdPod(
    {},
    { ports: [{ containerPort: 80 }], resources: { limits: { cpu: '1' }, requests: { memory: '1Mi' } } },
  )
  t.same(made.spec, {
    containers: [
      {
        name: 'web',
        image: 'nginx:1.27',
        imagePullPolicy: 'IfNotPresent',
        ports: [{ containerPort: 80, protocol: 'TCP' }],
        resources: { limits: { cpu: '1' }, requests: { cpu: '1', memory: '1Mi' } },
        terminationMessagePath: '/dev/termination-log',
        terminationMessagePolicy: 'File',
      },
    ],
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 30,
    dnsPolicy: 'ClusterFirst',
    schedulerName: 'default-scheduler',
    securityContext: {},
    enableServiceLinks: true,
    tolerations: [
      { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
      { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
    ],
  })
  t.same(made.status, { phase: 'Pending', qosClass: 'Burstable' })
  t.ok(decode(PodSchema, made).ok, 'it is still a pod')
})

test('the pull policy follows the tag, and a port of the host network is a port of the host', async (t) => {
  const policy = (image: string) => createdPod({}, { image }).spec.containers[0]?.imagePullPolicy
  t.equal(policy('nginx'), 'Always')
  t.equal(policy('registry.lan:5000/nginx'), 'Always')
  t.equal(policy('nginx:latest'), 'Always')
  t.equal(policy('registry.lan:5000/nginx:1'), 'IfNotPresent')
  t.equal(policy(`nginx@sha256:${'0'.repeat(64)}`), 'IfNotPresent')
  const onHost = createdPod({ hostNetwork: true }, { ports: [{ containerPort: 80 }] })
  t.equal(onHost.spec.containers[0]?.ports?.[0]?.hostPort, 80)
})

test('default tolerations are added only where the pod has no matching one', async (t) => {
  const keys = (...tolerations: Toleration[]) =>
    createdPod({ tolerations }).spec.tolerations?.map(({ key }) => key?.replace('node.kubernetes.io/', ''))
  t.same(keys({ operator: 'Exists' }), [undefined])
  t.same(keys({ key: 'node.kubernetes.io/not-ready', operator: 'Exists' }), ['not-ready', 'unreachable'])
  t.same(keys({ operator: 'Exists', effect: 'NoSchedule' }), [undefined, 'not-ready', 'unreachable'])
})

test('the server records which tolerations it added, and a client cannot change the record', async (t) => {
  const name = 'bramble.dev/default-tolerations'
  const keys = ['not-ready', 'unreachable'].map((key) => `node.kubernetes.io/${key}`)
  const [notReady = '', unreachable = ''] = keys
  const lasting = (key: string, tolerationSeconds: number): Toleration => ({
    key,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds,
  })
  const asked = (claim: string | undefined, ...tolerations: Toleration[]) => {
    const bare = pod({ tolerations })
    const annotations = { note: 'mine', ...(claim !== undefined && { [name]: claim }) }
    return createPod({ ...bare, metadata: { ...bare.metadata, annotations } })
  }
  const recorded = (...given: Parameters<typeof asked>) => asked(...given).metadata.annotations?.[name]
  t.equal(recorded(undefined), keys.join())
  t.equal(recorded(undefined, lasting(notReady, 300)), unreachable)
  t.equal(recorded(undefined, lasting(notReady, 300), lasting(unreachable, 300)), '')
  t.equal(recorded(undefined, lasting(notReady, 30)), unreachable)
  t.equal(recorded(undefined, { operator: 'Exists' }), undefined)
  t.equal(recorded(keys.join(), { operator: 'Exists' }), undefined, 'there is nothing to claim')
  t.equal(recorded(keys.join(), lasting(notReady, 30), lasting(unreachable, 30)), undefined)
  t.equal(recorded('', { operator: 'Exists', key: 'disk' }), keys.join(), 'nothing can be denied')

  const first = asked(undefined)
  t.equal(recorded(first.metadata.annotations?.[name], ...(first.spec.tolerations ?? [])), keys.join(), 'a copy')
  t.equal(first.metadata.annotations?.note, 'mine')
  const changed = (annotations: { readonly [name: string]: string }) =>
    updatePod(first, { ...first, metadata: { ...first.metadata, annotations } }).metadata.annotations
  t.same(changed({ note: 'yours' }), { note: 'yours', [name]: keys.join() })
  t.same(changed({ [name]: '' }), { [name]: keys.join() })
  t.same(changed({}), { [name]: keys.join() })
})

test('label keys of a neighbourly term become part of its selector', async (t) => {
  const labelSelector = { matchLabels: { app: 'web' } }
  const term = { topologyKey: 'zone', labelSelector, matchLabelKeys: ['version', 'none'], mismatchLabelKeys: ['team'] }
  const podAntiAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [term] }
  const labelled = pod({ affinity: { podAntiAffinity } })
  const labels = { version: '2', team: 'red' }
  const made = create('pods', { ...labelled, metadata: { ...labelled.metadata, labels } })
  const matchExpressions = [
    { key: 'version', operator: 'In', values: ['2'] },
    { key: 'team', operator: 'NotIn', values: ['red'] },
  ]
  const required = [{ topologyKey: 'zone', labelSelector: { ...labelSelector, matchExpressions } }]
  t.match(made, {
    spec: { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } } },
  })
})

test('a new pod with gates waits for them, and what admission took from its class stays', async (t) => {
  const gated = createdPod({ schedulingGates: [{ name: 'a' }] })
  t.same(gated.status, {
    phase: 'Pending',
    qosClass: 'BestEffort',
    conditions: [
      {
        type: 'PodScheduled',
        status: 'False',
        reason: 'SchedulingGated',
        message: 'Scheduling is blocked due to non-empty scheduling gates',
        lastTransitionTime: '1970-01-01T00:00:00Z',
      },
    ],
  })
  t.equal(createdPod({ schedulingGates: [] }).status?.conditions, undefined)
  const admitted = createdPod({ priority: 0, preemptionPolicy: 'Never' })
  const { priority: _, preemptionPolicy: __, ...bare } = admitted.spec
  t.match(updatePod(admitted, { ...admitted, spec: bare }).spec, { priority: 0, preemptionPolicy: 'Never' })
  const plain = createdPod()
  t.same(updatePod(plain, plain).spec, plain.spec)
})

test('a node creates as many mirror pods as it may have pods, between 110 and 500', async (t) => {
  const limited = async (capacity: { readonly [resource: string]: string } | undefined, most: number) => {
    const { ask, store } = await anApi(t)
    const node = await store.create('nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'pi-1' } })
    if (capacity !== undefined)
      await store.updateStatus('nodes', { ...node, status: { capacity, allocatable: capacity } })
    const owner = { apiVersion: 'v1', kind: 'Node', name: 'pi-1', uid: node.metadata.uid, controller: true }
    const mirror = (index: number): Pod => ({
      ...pod({ nodeName: 'pi-1' }),
      metadata: {
        name: `mirror-${index}`,
        namespace: 'default',
        annotations: { [mirrorAnnotation]: 'hash' },
        ownerReferences: [owner],
      },
    })
    await store.create('pods', { ...pod({ nodeName: 'pi-1' }), metadata: { name: 'other', namespace: 'default' } })
    for (let index = 2; index <= most; index++) await store.create('pods', mirror(index))
    const post = (body: Pod) => ask('POST', '/api/v1/namespaces/default/pods', { body, as: nodeIdentity('pi-1') })
    t.match(await post(mirror(0)), { code: 201 })
    const message = new RegExp(`node "pi-1" can not create more than ${most} mirror pods`)
    t.match(await post(mirror(1)), { code: 403, body: { message } })
  }
  await limited(undefined, 110)
  await limited({}, 110)
  await limited({ pods: 'many' }, 110)
  await limited({ pods: '112' }, 112)
  await limited({ pods: '9999' }, 500)
})

test('a write of the status makes no mirror pod, changes no record of the server, and pairs addresses', async (t) => {
  const { ask, store } = await anApi(t)
  const record = 'bramble.dev/default-tolerations'
  const annotations = { [record]: '' }
  await store.create('pods', {
    ...pod({ nodeName: 'pi-1' }),
    metadata: { name: 'web', namespace: 'default', annotations },
  })
  const patch = (body: object, as = nodeIdentity('pi-1')) =>
    ask('PATCH', '/api/v1/namespaces/default/pods/web/status', { type: patchTypes.merge, body, as })
  const mirror = { metadata: { annotations: { [mirrorAnnotation]: 'hash' } } }
  t.match(await patch(mirror), {
    code: 422,
    body: { message: /may not add, change or remove the mirror pod annotation/ },
  })
  const admin = { user: 'admin', groups: ['system:masters'] }
  const claim = { metadata: { annotations: { [record]: 'node.kubernetes.io/not-ready' } } }
  t.match(await patch(claim, admin), { code: 200, body: { metadata: { annotations } } })
  t.match(await patch({ status: { podIP: '10.244.1.5' } }), {
    code: 200,
    body: { status: { podIPs: [{ ip: '10.244.1.5' }] } },
  })
  t.match(await patch({ status: { podIPs: [{ ip: '10.244.1.5' }, { ip: '10.244.1.6' }] } }), { code: 422 })
})
