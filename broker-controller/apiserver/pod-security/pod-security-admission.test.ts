import { type Test, test } from 'tap'
import { nodeIdentity } from '../../../api/identity.ts'
import type { PodSpec, PodTemplateSpec } from '../../../api/pod.ts'
import { mirrorAnnotation } from '../../../api/pod.ts'
import { aNode } from '../../../api/testing/builders.ts'
import { anApi, type Document, type Got, patchTypes } from '../../testing/api-in-memory.ts'
import { controllerCreation } from '../handlers/controller-creation.ts'
import { podSecuritySettings } from './pod-security-settings.ts'

const prefix = 'pod-security.kubernetes.io/'
const privileged = { privileged: true }
const secure = {
  allowPrivilegeEscalation: false,
  runAsNonRoot: true,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
}
type Labels = { readonly [name: string]: string }
type Settings = Parameters<typeof podSecuritySettings>[0]

function specOf(securityContext: object = {}, more: Partial<PodSpec> = {}): PodSpec {
  return { containers: [{ name: 'c', image: 'nginx', securityContext }], ...more }
}

function podNamed(name: string, spec: PodSpec = specOf(), metadata: object = {}): Document {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, ...metadata }, spec }
}

function labelsOf(labels: Labels): Labels {
  return Object.fromEntries(Object.entries(labels).map(([name, value]) => [`${prefix}${name}`, value]))
}

/** An API whose namespace `shop` has these labels. */
async function aShop(t: Test, labels: Labels = {}, settings: Settings = {}) {
  const problems: string[] = []
  const api = await anApi(t, { podSecurity: podSecuritySettings(settings, problems) })
  t.same(problems, [])
  const { ask, store } = api
  const metadata = { name: 'shop', labels: labelsOf(labels) }
  await store.create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata })
  const at = '/api/v1/namespaces/shop'
  return {
    ...api,
    at,
    createPod: (pod: Document, more: Parameters<typeof ask>[2] = {}) =>
      ask('POST', `${at}/pods`, { body: pod, ...more }),
    labelShop: (change: { readonly [name: string]: string | null }) => {
      const named = Object.fromEntries(Object.entries(change).map(([name, value]) => [`${prefix}${name}`, value]))
      return ask('PATCH', at, { body: { metadata: { labels: named } }, type: patchTypes.merge })
    },
  }
}

const messageOf = ({ body }: Got) => String(body['message'])

test('a pod that violates what its namespace enforces is refused with the words of Kubernetes', async (t) => {
  const { createPod, registry, at, ask } = await aShop(t, { enforce: 'restricted', 'enforce-version': 'v1.30' })
  const refused = await createPod(podNamed('x'))
  const violations = [
    'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false)',
    'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"])',
    'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true)',
    'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
  ].join(', ')
  t.match(refused, {
    code: 403,
    body: { reason: 'Forbidden', details: { name: 'x', kind: 'pods' } },
    warnings: [],
    annotations: { [`${prefix}enforce-policy`]: 'restricted:v1.30' },
  })
  t.equal(messageOf(refused), `pods "x" is forbidden: violates PodSecurity "restricted:v1.30": ${violations}`)
  t.equal((await createPod(podNamed('x'), { type: 'application/json' })).code, 403)
  t.equal((await ask('POST', `${at}/pods?dryRun=All`, { body: podNamed('x') })).code, 403)
  const applied = { body: podNamed('x'), type: patchTypes.apply }
  t.equal(
    (await ask('PATCH', `${at}/pods/x?fieldManager=me`, applied)).code,
    403,
    'an apply that creates is a creation',
  )
  t.match(await createPod(podNamed('y', specOf(secure))), { code: 201, warnings: [] })
  t.match(registry.samplesOf('pod_security_evaluations_total'), [
    {
      labels: {
        decision: 'deny',
        policy_level: 'restricted',
        policy_version: 'v1.30',
        mode: 'enforce',
        request_operation: 'create',
        resource: 'pod',
        subresource: '',
      },
    },
    { labels: { decision: 'allow' } },
  ])
})

test('a name that the server generates is in the refusal', async (t) => {
  const { createPod } = await aShop(t, { enforce: 'baseline' })
  const refused = await createPod({ ...podNamed('', specOf(privileged)), metadata: { generateName: 'web-' } })
  t.match(
    messageOf(refused),
    /^pods "web-[a-z0-9]{5}" is forbidden: violates PodSecurity "baseline:latest": privileged /,
  )
})

test('without labels and configuration every pod is allowed', async (t) => {
  const { createPod } = await aShop(t)
  t.match(await createPod(podNamed('x', specOf(privileged, { hostPID: true }))), {
    code: 201,
    warnings: [],
    annotations: { [`${prefix}enforce-policy`]: 'privileged:latest' },
  })
})

test('what is warned of and audited is created', async (t) => {
  const { createPod } = await aShop(t, { warn: 'baseline', audit: 'baseline', 'audit-version': 'v1.25' })
  const violation = 'privileged (container "c" must not set securityContext.privileged=true)'
  t.match(await createPod(podNamed('x', specOf(privileged))), {
    code: 201,
    warnings: [`would violate PodSecurity "baseline:latest": ${violation}`],
    annotations: {
      [`${prefix}enforce-policy`]: 'privileged:latest',
      [`${prefix}audit-violations`]: `would violate PodSecurity "baseline:v1.25": ${violation}`,
    },
  })
})

test('the configuration has the policy of namespaces without labels', async (t) => {
  const settings = { defaults: { enforce: 'baseline', 'enforce-version': 'v1.29' } }
  const { createPod, labelShop } = await aShop(t, {}, settings)
  t.match(messageOf(await createPod(podNamed('x', specOf(privileged)))), /violates PodSecurity "baseline:v1\.29": /)
  await labelShop({ enforce: 'privileged' })
  t.equal((await createPod(podNamed('x', specOf(privileged)))).code, 201)
})

test('labels that cannot be read enforce restricted', async (t) => {
  const { createPod } = await aShop(t, { enforce: 'strict' })
  const refused = await createPod(podNamed('x'))
  t.match(messageOf(refused), /violates PodSecurity "restricted:latest": /)
  t.match(
    refused.annotations[`${prefix}error`],
    /^Failed to parse policy: metadata\.labels\[.*enforce\]: Invalid value: "strict"/,
  )
})

test('of a template its author is warned, and it is never refused', async (t) => {
  const { ask } = await aShop(t, { enforce: 'baseline', audit: 'restricted' })
  const labels = { app: 'web' }
  const template: PodTemplateSpec = { metadata: { labels }, spec: specOf(privileged) }
  const once = { ...template, spec: { ...template.spec, restartPolicy: 'Never' } }
  const selector = { matchLabels: labels }
  const apps = '/apis/apps/v1/namespaces/shop'
  const kinds: readonly (readonly [string, string, string, object])[] = [
    [apps, 'deployments', 'Deployment', { spec: { selector, template } }],
    [apps, 'replicasets', 'ReplicaSet', { spec: { selector, template } }],
    [apps, 'daemonsets', 'DaemonSet', { spec: { selector, template } }],
    [apps, 'statefulsets', 'StatefulSet', { spec: { selector, template, serviceName: 'web' } }],
    [
      '/api/v1/namespaces/shop',
      'replicationcontrollers',
      'ReplicationController',
      { spec: { selector: labels, template } },
    ],
    ['/api/v1/namespaces/shop', 'podtemplates', 'PodTemplate', { template }],
    ['/apis/batch/v1/namespaces/shop', 'jobs', 'Job', { spec: { template: once } }],
    [
      '/apis/batch/v1/namespaces/shop',
      'cronjobs',
      'CronJob',
      { spec: { schedule: '0 * * * *', jobTemplate: { spec: { template: once } } } },
    ],
  ]
  const warnings = [
    'would violate PodSecurity "baseline:latest": privileged (container "c" must not set securityContext.privileged=true)',
  ]
  for (const [path, name, kind, more] of kinds) {
    const apiVersion = path.startsWith('/api/') ? 'v1' : path.split('/').slice(2, 4).join('/')
    const body = { apiVersion, kind, metadata: { name: 'web' }, ...more }
    const made = await ask('POST', `${path}/${name}`, { body })
    t.match(made, { code: 201, warnings }, kind)
    t.match(made.annotations[`${prefix}audit-violations`], /^would violate PodSecurity "restricted:latest": /, kind)
    t.notOk(`${prefix}enforce-policy` in made.annotations)
    const annotated = { body: { metadata: { annotations: { a: 'b' } } }, type: patchTypes.merge }
    t.match(await ask('PATCH', `${path}/${name}/web`, annotated), { code: 200, warnings }, `${kind} is updated`)
  }
  const scaled = { body: { spec: { replicas: 3 } }, type: patchTypes.merge }
  t.match(await ask('PATCH', `${apps}/deployments/web/scale`, scaled), { code: 200, warnings: [] })
})

test('a workload without a template passes', async (t) => {
  const { ask, at } = await aShop(t, { enforce: 'baseline' })
  const body = { apiVersion: 'v1', kind: 'ReplicationController', metadata: { name: 'w' }, spec: { replicas: 0 } }
  const made = await ask('POST', `${at}/replicationcontrollers`, { body })
  t.same(made.warnings, [])
})

test('the pods of a controller are refused as those of a user', async (t) => {
  const { needs } = await aShop(t, { enforce: 'baseline' })
  const creation = controllerCreation(needs, needs.kinds)
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web-1', namespace: 'shop' },
    spec: specOf(privileged),
  } as const
  const message = /^pods "web-1" is forbidden: violates PodSecurity "baseline:latest": privileged /
  await t.rejects(creation.create('pods', pod, 'replicaset-controller'), { message })
})

test('an update of a pod is judged where it brings another image', async (t) => {
  const { createPod, labelShop, ask, at } = await aShop(t)
  await createPod(podNamed('x', specOf(privileged)))
  await labelShop({ enforce: 'baseline' })
  const patch = (body: object, path = '') => ask('PATCH', `${at}/pods/x${path}`, { body, type: patchTypes.strategic })
  t.match(await patch({ metadata: { labels: { a: 'b' } } }), { code: 200, warnings: [] })
  t.match(await patch({ spec: { activeDeadlineSeconds: 9 } }), { code: 200, warnings: [] })
  t.match(await patch({ status: { phase: 'Running' } }, '/status'), { code: 200, warnings: [] })
  const other = await patch({ spec: { containers: [{ name: 'c', image: 'nginx:2' }] } })
  t.match(messageOf(other), /^pods "x" is forbidden: violates PodSecurity "baseline:latest": privileged /)
})

test('an ephemeral container is judged', async (t) => {
  const { createPod, ask, at } = await aShop(t, { enforce: 'restricted' })
  await createPod(podNamed('x', specOf(secure)))
  const add = (name: string, securityContext: object) =>
    ask('PATCH', `${at}/pods/x/ephemeralcontainers`, {
      body: { spec: { ephemeralContainers: [{ name, image: 'busybox', securityContext }] } },
      type: patchTypes.strategic,
    })
  const refused = await add('debugger', { ...secure, capabilities: { drop: ['ALL'], add: ['SYS_PTRACE'] } })
  t.match(refused.code, 403)
  t.match(
    messageOf(refused),
    'pods "x" is forbidden: violates PodSecurity "restricted:latest": unrestricted capabilities (container "debugger" must not include "SYS_PTRACE" in securityContext.capabilities.add)',
  )
  t.equal((await add('debugger', secure)).code, 200)
})

test('exempt are namespaces, users and runtime classes', async (t) => {
  const exemptions = { namespaces: ['lab'], usernames: ['ops'], runtimeClasses: ['kata'] }
  const { ask, createPod, store, registry } = await aShop(t, { enforce: 'baseline', warn: 'baseline' }, { exemptions })
  const runtimeClass = {
    apiVersion: 'node.k8s.io/v1',
    kind: 'RuntimeClass',
    metadata: { name: 'kata' },
    handler: 'kata',
  }
  t.equal((await ask('POST', '/apis/node.k8s.io/v1/runtimeclasses', { body: runtimeClass })).code, 201)
  const key = `${prefix}exempt`
  const bad = specOf(privileged)
  const made = { code: 201, warnings: [] }
  const ops = { user: 'ops', groups: ['system:masters'] }
  t.match(await createPod(podNamed('a', bad), { as: ops }), { ...made, annotations: { [key]: 'user' } })
  const inClass = podNamed('b', { ...bad, runtimeClassName: 'kata' })
  t.match(await createPod(inClass), { ...made, annotations: { [key]: 'runtimeClass' } })
  t.equal((await createPod(podNamed('c', bad))).code, 403)

  const lab = {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'lab', labels: labelsOf({ enforce: 'restricted' }) },
  }
  t.match(await ask('POST', '/api/v1/namespaces', { body: lab }), {
    code: 201,
    warnings: [
      'namespace "lab" is exempt from Pod Security, and the policy (enforce=restricted:latest) will be ignored',
    ],
  })
  const inLab = await ask('POST', '/api/v1/namespaces/lab/pods', { body: podNamed('d', bad) })
  t.match(inLab, { ...made, annotations: { [key]: 'namespace' } })
  t.ok(await store.get('pods', { namespace: 'lab', name: 'd' }))
  const exempted = registry.samplesOf('pod_security_exemptions_total').reduce((sum, { value }) => sum + value, 0)
  t.equal(exempted, 3)
})

test('a namespace is created with valid labels only', async (t) => {
  const { ask } = await aShop(t)
  const labels = labelsOf({ enforce: 'strict', 'warn-version': '1.32' })
  const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'new', labels } }
  const refused = await ask('POST', '/api/v1/namespaces', { body })
  t.match(refused, { code: 422, body: { reason: 'Invalid' } })
  t.equal(
    messageOf(refused),
    'Namespace "new" is invalid: [metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "strict": must be one of privileged, baseline, restricted, metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: "1.32": must be "latest" or "v1.x"]',
  )
})

test('labels that were wrong already stop no other change of a namespace', async (t) => {
  const { labelShop, ask, at } = await aShop(t, { enforce: 'strict' })
  const note = { body: { metadata: { annotations: { a: 'b' } } }, type: patchTypes.merge }
  t.equal((await ask('PATCH', at, note)).code, 200)
  t.equal((await labelShop({ enforce: 'stricter' })).code, 422)
  t.equal((await labelShop({ warn: 'x' })).code, 422)
  t.equal((await labelShop({ enforce: 'baseline' })).code, 200)
})

test('a stricter namespace warns of the pods that are in it', async (t) => {
  const { createPod, labelShop, ask, at } = await aShop(t)
  for (const name of ['b', 'a', 'c']) await createPod(podNamed(name, specOf(privileged)))
  await createPod(podNamed('one', specOf({}, { hostPID: true })))
  await createPod(podNamed('fine'))
  const warnings = [
    'existing pods in namespace "shop" violate the new PodSecurity enforce level "baseline:latest"',
    'a (and 2 other pods): privileged',
    'one: host namespaces',
  ]
  const rehearsal = { body: { metadata: { labels: labelsOf({ enforce: 'baseline' }) } }, type: patchTypes.merge }
  t.match(await ask('PATCH', `${at}?dryRun=All`, rehearsal), { code: 200, warnings })
  t.match(await labelShop({ enforce: 'baseline' }), { code: 200, warnings })
  t.same((await labelShop({ note: 'x' })).warnings, [], 'no other level')
  t.same((await labelShop({ enforce: 'privileged' })).warnings, [])
  t.equal((await labelShop({ enforce: 'restricted' })).warnings.length, 4)
  t.same((await labelShop({ enforce: 'baseline' })).warnings, [], 'a lower level')
  t.equal((await labelShop({ 'enforce-version': 'v1.30' })).warnings.length, 3, 'another version')
})

test('the mirror pod of a static pod is judged as any pod', async (t) => {
  const { createPod, store } = await aShop(t, { enforce: 'baseline' })
  const { metadata } = await store.create('nodes', aNode({ name: 'pi-1' }))
  const ownerReferences = [{ apiVersion: 'v1', kind: 'Node', name: 'pi-1', uid: metadata.uid, controller: true }]
  const mirror = (securityContext: object) =>
    podNamed('static-pi-1', specOf(securityContext, { nodeName: 'pi-1' }), {
      annotations: { [mirrorAnnotation]: 'hash' },
      ownerReferences,
    })
  const as = nodeIdentity('pi-1')
  t.match(
    messageOf(await createPod(mirror(privileged), { as })),
    /^pods "static-pi-1" is forbidden: violates PodSecurity /,
  )
  t.equal((await createPod(mirror({}), { as })).code, 201)
})

test('a pod with as many containers as it may have is refused with a bounded text', async (t) => {
  const { createPod } = await aShop(t, { enforce: 'restricted', audit: 'restricted' })
  const containers = Array.from({ length: 250 }, (_, number) => ({
    name: `container-with-a-long-name-of-fifty-characters-${number}`,
    image: 'i',
  }))
  const refused = await createPod(podNamed('x', { containers }))
  t.equal(refused.code, 403)
  t.ok(messageOf(refused).length < 8300, `${messageOf(refused).length} characters`)
  t.match(messageOf(refused), /\.\.\.$/)
  t.equal(refused.annotations[`${prefix}audit-violations`]?.length, 2048)
})
