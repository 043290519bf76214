import { test } from 'tap'
import type { ServiceAccount } from '../../../../api/access/service-account.ts'
import type { Container, Pod, PodSpec } from '../../../../api/pod.ts'
import { aPod } from '../../../../api/testing/builders.ts'
import { anApi, patchTypes } from '../../../testing/api-in-memory.ts'
import { podsPath, sentPod } from '../../../testing/sent-objects.ts'
import { mirrorProblem, unlistedSecret, withAccount } from './pod-account.ts'

const anAccount = (over: Partial<ServiceAccount> = {}): ServiceAccount => ({
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name: 'default', namespace: 'default' },
  ...over,
})
const admitted = (spec: Partial<PodSpec>, account: Partial<ServiceAccount> = {}) =>
  withAccount(aPod({ spec }), anAccount(account), 'kube-api-access-abcde').spec
const path = '/var/run/secrets/kubernetes.io/serviceaccount'
const mount = { name: 'kube-api-access-abcde', readOnly: true, mountPath: path }

test('every container of a pod mounts the token of its account', async (t) => {
  const spec = admitted({
    containers: [{ name: 'a', volumeMounts: [{ name: 'data', mountPath: '/data' }] }, { name: 'b' }],
    initContainers: [{ name: 'i' }],
    volumes: [{ name: 'data', emptyDir: {} }],
  })
  t.match(spec, { serviceAccountName: 'default', serviceAccount: 'default' })
  t.same(
    spec.containers.map(({ volumeMounts }) => volumeMounts),
    [[{ name: 'data', mountPath: '/data' }, mount], [mount]],
  )
  t.same(spec.initContainers?.[0]?.volumeMounts, [mount])
  t.same(spec.volumes?.[1], {
    name: 'kube-api-access-abcde',
    projected: {
      defaultMode: 0o644,
      sources: [
        { serviceAccountToken: { path: 'token', expirationSeconds: 3607 } },
        { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
        {
          downwardAPI: {
            items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }],
          },
        },
      ],
    },
  })
  t.notOk(admitted({}).initContainers, 'none are made')
})

test('a container keeps what it mounts there itself', async (t) => {
  const own: Container = { name: 'own', volumeMounts: [{ name: 'mine', mountPath: path }] }
  const only = admitted({ containers: [own] })
  t.same([only.containers, only.volumes], [[own], undefined], 'no container needs the volume')
  const mixed = admitted({ containers: [own, { name: 'other' }] })
  t.same(mixed.containers[0], own)
  t.same(mixed.containers[1]?.volumeMounts, [mount])
  t.equal(mixed.volumes?.length, 1)
  t.equal(admitted({ containers: [own], initContainers: [{ name: 'i' }] }).volumes?.length, 1, 'for an init container')
  const volumes = [{ name: 'kube-api-access-mine', emptyDir: {} }]
  const present = admitted({ volumes })
  t.same(present.volumes, volumes)
  t.equal(present.containers[0]?.volumeMounts?.[0]?.name, 'kube-api-access-mine')
})

test('the pod decides whether it mounts a token, then its account', async (t) => {
  const isMounted = (pod: boolean | undefined, account: boolean | undefined) => {
    const spec = pod === undefined ? {} : { automountServiceAccountToken: pod }
    return admitted(spec, account === undefined ? {} : { automountServiceAccountToken: account }).volumes !== undefined
  }
  t.same(
    [isMounted(undefined, undefined), isMounted(undefined, false), isMounted(undefined, true)],
    [true, false, true],
  )
  t.same([isMounted(true, false), isMounted(false, true)], [true, false])
})

test('a pod without image pull secrets has those of its account', async (t) => {
  const account = { imagePullSecrets: [{ name: 'a' }, { name: 'b' }] }
  t.same(admitted({}, account).imagePullSecrets, account.imagePullSecrets)
  t.same(admitted({ imagePullSecrets: [{ name: 'own' }] }, account).imagePullSecrets, [{ name: 'own' }])
  t.same(admitted({ imagePullSecrets: [] }, account).imagePullSecrets, account.imagePullSecrets)
  t.notOk(admitted({}).imagePullSecrets)
})

test('a mirror pod refers to no account, secret or token', async (t) => {
  const projected = { sources: [{ serviceAccountToken: { path: 'token' } }] }
  const problem = (spec: Partial<PodSpec>) => mirrorProblem(aPod({ spec }))
  t.equal(problem({}), undefined)
  t.equal(problem({ serviceAccountName: 'a' }), 'a mirror pod may not reference service accounts')
  t.equal(problem({ serviceAccount: 'a' }), 'a mirror pod may not reference service accounts')
  t.equal(problem({ imagePullSecrets: [{ name: 'a' }] }), 'a mirror pod may not reference secrets')
  t.equal(
    problem({ volumes: [{ name: 'a', projected }] }),
    'a mirror pod may not use ServiceAccountToken volume projections',
  )
})

test('an account may limit the Secrets that its pods use', async (t) => {
  const account = (enforced: string) =>
    anAccount({
      metadata: {
        name: 'ci',
        ...(enforced !== '' && { annotations: { 'kubernetes.io/enforce-mountable-secrets': enforced } }),
      },
      secrets: [{ name: 'listed' }],
      imagePullSecrets: [{ name: 'pull' }],
    })
  const problem = (spec: Partial<PodSpec>, enforced = 'true') => unlistedSecret(aPod({ spec }), account(enforced))
  const volume = (secretName: string) => ({ volumes: [{ name: 'v', secret: { secretName } }] })
  t.equal(problem(volume('listed')), undefined)
  const other = 'is not allowed because service account ci does not reference that'
  t.equal(problem(volume('other')), `volume with secret.secretName="other" ${other} secret`)
  t.equal(problem(volume('other'), 'false'), undefined)
  t.equal(problem(volume('other'), ''), undefined)
  const env = (name: string) => [{ name: 'KEY', valueFrom: { secretKeyRef: { name, key: 'k' } } }]
  const containers = (more: Partial<Container>) => [{ name: 'main', ...more }]
  t.equal(problem({ containers: containers({ env: env('listed') }) }), undefined)
  t.equal(
    problem({ containers: containers({ env: env('other') }) }),
    `container main with envVar KEY referencing secret.secretName="other" ${other} secret`,
  )
  t.equal(
    problem({ initContainers: containers({ envFrom: [{ secretRef: { name: 'other' } }] }) }),
    `init container main with envFrom referencing secret.secretName="other" ${other} secret`,
  )
  t.equal(problem({ imagePullSecrets: [{ name: 'pull' }] }), undefined)
  t.equal(
    problem({ imagePullSecrets: [{ name: 'pull' }, { name: 'listed' }] }),
    `imagePullSecrets[1].name="listed" ${other} imagePullSecret`,
  )
})

test('the API gives new pods their account, and forbids one that does not exist', async (t) => {
  const { ask, store } = await anApi(t)
  const key = { namespace: 'default', name: 'default' }
  t.equal(await store.get('serviceaccounts', key), undefined)
  const { code, body } = await ask('POST', podsPath, { body: sentPod('web') })
  const { spec } = body as unknown as Pod
  t.equal(code, 201)
  t.match(spec, { serviceAccountName: 'default', volumes: [{ name: /^kube-api-access-[a-z0-9]{5}$/ }] })
  t.equal(spec.containers[0]?.volumeMounts?.[0]?.name, spec.volumes?.[0]?.name)
  t.ok(await store.get('serviceaccounts', key), 'the default account is there at once')
  t.match(await ask('POST', podsPath, { body: sentPod('ci', { serviceAccount: 'ci' }) }), {
    code: 403,
    body: {
      message: 'pods "ci" is forbidden: error looking up service account default/ci: serviceaccount "ci" not found',
      reason: 'Forbidden',
    },
  })
  await store.create('serviceaccounts', anAccount({ metadata: { name: 'ci', namespace: 'default' } }))
  t.match(await ask('POST', podsPath, { body: sentPod('ci', { serviceAccount: 'ci' }) }), {
    code: 201,
    body: { spec: { serviceAccountName: 'ci', serviceAccount: 'ci' } },
  })
  const mirror = { annotations: { 'kubernetes.io/config.mirror': 'hash' } }
  t.match(await ask('POST', podsPath, { body: sentPod('m1', { nodeName: 'a' }, mirror) }), { code: 201 })
  const stored = await store.get('pods', { namespace: 'default', name: 'm1' })
  t.same([stored?.spec.serviceAccountName, stored?.spec.volumes], [undefined, undefined])
  t.match(await ask('POST', podsPath, { body: sentPod('m2', { nodeName: 'a', serviceAccountName: 'ci' }, mirror) }), {
    code: 403,
    body: { message: 'pods "m2" is forbidden: a mirror pod may not reference service accounts' },
  })
})

test('an ephemeral container reads only the Secrets that its account lists, where the account enforces that', async (t) => {
  const { ask, store } = await anApi(t)
  const annotations = { 'kubernetes.io/enforce-mountable-secrets': 'true' }
  const metadata = { name: 'ci', namespace: 'default', annotations }
  await store.create('serviceaccounts', anAccount({ metadata, secrets: [{ name: 'listed' }] }))
  await ask('POST', podsPath, { body: sentPod('web', { serviceAccountName: 'ci' }) })
  const added = (more: object) => {
    const container = { name: 'debugger', image: 'busybox', ...more }
    const body = { spec: { ephemeralContainers: [container] } }
    return ask('PATCH', `${podsPath}/web/ephemeralcontainers`, { type: patchTypes.strategic, body })
  }
  t.match(await added({ envFrom: [{ secretRef: { name: 'other' } }] }), {
    code: 403,
    body: {
      message:
        'pods "web" is forbidden: ephemeral container debugger with envFrom referencing secret.secretName="other" ' +
        'is not allowed because service account ci does not reference that secret',
    },
  })
  const variable = { name: 'A', valueFrom: { secretKeyRef: { name: 'other', key: 'a' } } }
  t.match(await added({ env: [variable] }), { code: 403, body: { message: /debugger with envVar A referencing/ } })
  t.match(await added({ envFrom: [{ secretRef: { name: 'listed' } }] }), { code: 200 })
})
