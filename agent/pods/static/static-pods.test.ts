import { test } from 'tap'
import { staticPod } from './static-pods.ts'

const facts = { path: '/m/web.yaml', nodeName: 'pi-01', nowWallMs: Date.parse('2026-01-01T00:00:00Z') }
const web = (more: object = {}, spec: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', ...more },
  spec: { containers: [{ name: 'main', image: 'busybox:1.36' }], ...spec },
})

function podOf(content: unknown, more: Partial<typeof facts> = {}) {
  const made = staticPod(content, { ...facts, ...more })
  if (!made.ok) throw new Error(made.problems.join())
  return made.pod
}

function problemsOf(content: unknown): readonly string[] {
  const made = staticPod(content, facts)
  return made.ok ? [] : made.problems
}

test('a manifest becomes a pod of this node, named and known as the kubelet does it', async (t) => {
  const pod = podOf(web({ uid: 'mine', ownerReferences: [], labels: { app: 'web' } }))
  const hash = pod.metadata.uid ?? ''
  t.match(hash, /^[0-9a-f]{32}$/)
  t.same(pod.metadata, {
    name: 'web-pi-01',
    namespace: 'default',
    uid: hash,
    labels: { app: 'web' },
    annotations: {
      'kubernetes.io/config.source': 'file',
      'kubernetes.io/config.hash': hash,
      'kubernetes.io/config.seen': '2026-01-01T00:00:00Z',
    },
  })
  t.match(pod.spec, {
    nodeName: 'pi-01',
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 30,
    tolerations: [{ operator: 'Exists', effect: 'NoExecute' }],
    containers: [{ imagePullPolicy: 'IfNotPresent' }],
  })
  t.equal(pod.spec.tolerations?.length, 1, 'it tolerates all: nothing is added')
})

test('it is another pod when what is written, the file or the node is another, and only then', async (t) => {
  const { uid } = podOf(web()).metadata
  const { kind, spec, metadata, apiVersion } = web()
  t.equal(
    podOf({ spec, metadata, kind, apiVersion }, { nowWallMs: 0 }).metadata.uid,
    uid,
    'order and time do not count',
  )
  const others = [
    podOf(web({ labels: { a: 'b' } })),
    podOf(web(), { path: '/m/other.yaml' }),
    podOf(web(), { nodeName: 'pi-02' }),
  ]
  for (const other of others) t.not(other.metadata.uid, uid)
  t.equal(
    uid,
    '8a725ca8afb2fda87d16065c0d3161c6',
    'an agent of another version computes the same, or it would restart the pod',
  )
})

test('all problems of a manifest are reported at once, with their fields', async (t) => {
  t.same(problemsOf(undefined), ['it holds nothing that names its kind: a file holds one v1 Pod'])
  t.same(problemsOf({ apiVersion: 'apps/v1', kind: 'Deployment' }), [
    'it holds a Deployment of apps/v1: a file holds one v1 Pod',
  ])
  t.match(problemsOf({ apiVersion: 'v1', kind: 'Service' }), [/^it holds a Service of v1:/])
  t.match(problemsOf({ ...web(), apiVersion: 'v2' }), [/^it holds a Pod of v2:/])
  t.equal(problemsOf(web({ name: 'No_Name' }, { contaners: [] })).length, 2)
  t.match(problemsOf({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, spec: { containers: 1 } }), [
    /^spec\.containers: Invalid value: 1/,
  ])
  t.match(problemsOf(web({ name: 'No_Name' }, { restartPolicy: 'Sometimes', contaners: [] })), [
    /^metadata\.name: Invalid value: "No_Name-pi-01"/,
    /^spec\.restartPolicy: Unsupported value/,
    'spec.contaners: Unknown field',
  ])
  t.match(problemsOf(web({ name: undefined })), [/^metadata\.name: Required value/])
  t.match(problemsOf(web({}, { volumes: [{ name: 'v', iscsi: {} }] })), [/^spec\.volumes\[0\]\.iscsi: Forbidden/])
})

test('it must not need the API', async (t) => {
  const volumes = [
    { name: 'a', secret: { secretName: 'key' } },
    { name: 'b', configMap: { name: 'settings' } },
    { name: 'c', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } },
  ]
  t.match(problemsOf(web({}, { volumes, serviceAccountName: 'robot', runtimeClassName: 'safe' })), [
    /^spec: Forbidden: names the Secret key: a static pod runs without the API/,
    /the ConfigMap settings/,
    /the ServiceAccount robot/,
    /names service account tokens/,
    /the RuntimeClass safe/,
  ])
})
