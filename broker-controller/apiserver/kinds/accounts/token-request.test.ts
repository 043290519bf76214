import { test } from 'tap'
import { type Identity, nodeIdentity } from '../../../../api/identity.ts'
import { learntFromAnnotation } from '../../../../api/node/node-checkpoint.ts'
import { anApi, type Document } from '../../../testing/api-in-memory.ts'
import { podsPath, sentPod } from '../../../testing/sent-objects.ts'
import { tokenIssuer } from '../../authentication/tokens/service-account-tokens.ts'
import type { IssuedFor } from '../../handlers/token-issuer.ts'

const pi1 = nodeIdentity('pi-1')
const accountsPath = '/api/v1/namespaces/default/serviceaccounts'
const vault = { name: 'vault', projected: { sources: [{ serviceAccountToken: { path: 'token', audience: 'vault' } }] } }

async function world(t: Parameters<typeof anApi>[0]) {
  const issued: IssuedFor[] = []
  const tokens = {
    publicKeys: () => [],
    identify: async () => undefined,
    issue(request: IssuedFor) {
      issued.push(request)
      return 'a.b.c'
    },
  }
  const { ask, store } = await anApi(t, { tokens })
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'reader' } }
  await ask('POST', accountsPath, { body: account })
  const created = async (name: string, spec: Document, metadata: Document = {}) => {
    const { body } = await ask('POST', podsPath, { body: sentPod(name, spec, metadata) })
    return { apiVersion: 'v1', kind: 'Pod', name, uid: (body['metadata'] as { uid: string }).uid }
  }
  const request = (spec: Document, as: Identity | undefined = pi1, name = 'reader') =>
    ask('POST', `${accountsPath}/${name}/token`, { ...(as && { as }), body: { spec } })
  return { ask, store, issued, created, request }
}

test('a node gets tokens of its pods, for the audiences that their volumes name', async (t) => {
  const { issued, created, request } = await world(t)
  const web = await created('web', { nodeName: 'pi-1', serviceAccountName: 'reader', volumes: [vault] })
  t.match(await request({ boundObjectRef: web, expirationSeconds: 3607 }), {
    code: 201,
    body: { spec: { expirationSeconds: 3607, audiences: [tokenIssuer] }, status: { token: 'a.b.c' } },
  })
  t.match(issued.pop(), {
    account: { name: 'reader' },
    bound: { pod: { name: 'web', uid: web.uid } },
    expirationSeconds: 3607,
    extendedSeconds: 365 * 24 * 3600,
  })
  t.match(await request({ boundObjectRef: web, audiences: ['vault'], expirationSeconds: 3607 }), { code: 201 })
  t.notOk(issued.pop()?.extendedSeconds, 'a token for others ends when it was to end')
  t.match(await request({ boundObjectRef: web, expirationSeconds: 3600 }), { code: 201 })
  t.notOk(issued.pop()?.extendedSeconds, 'as any that was not mounted by admission')
  t.match(await request({ expirationSeconds: 3607 }, administrator), { code: 201 })
  t.notOk(issued.pop()?.extendedSeconds, 'nor is one without a pod')
})

test('a node gets the tokens that the CSI drivers of a pod request', async (t) => {
  const { ask, issued, created, request } = await world(t)
  const storage = '/apis/storage.k8s.io/v1'
  for (const [name, audience] of [
    ['inline.example', 'keys'],
    ['claimed.example', 'shares'],
    ['unused.example', 'bank'],
  ]) {
    const driver = { apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver', metadata: { name } }
    const body = {
      ...driver,
      spec: { tokenRequests: [{ audience }], volumeLifecycleModes: ['Ephemeral', 'Persistent'] },
    }
    t.match(await ask('POST', `${storage}/csidrivers`, { body }), { code: 201 })
  }
  const size = { storage: '1Gi' }
  const csi = { driver: 'claimed.example', volumeHandle: 'v1' }
  const shape = { accessModes: ['ReadWriteMany'], storageClassName: 'csi' }
  const volume = { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'pv' } }
  await ask('POST', '/api/v1/persistentvolumes', { body: { ...volume, spec: { ...shape, capacity: size, csi } } })
  const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'data' } }
  const claimed = { ...claim, spec: { ...shape, volumeName: 'pv', resources: { requests: size } } }
  await ask('POST', '/api/v1/namespaces/default/persistentvolumeclaims', { body: claimed })
  const volumes = [
    { name: 'keys', csi: { driver: 'inline.example' } },
    { name: 'data', persistentVolumeClaim: { claimName: 'data' } },
    { name: 'later', persistentVolumeClaim: { claimName: 'later' } },
  ]
  const web = await created('web', { nodeName: 'pi-1', serviceAccountName: 'reader', volumes })
  for (const audience of ['keys', 'shares']) {
    t.match(await request({ boundObjectRef: web, audiences: [audience] }), { code: 201 })
    t.match(issued.pop(), { audiences: [audience], bound: { pod: { name: 'web' } } })
  }
  t.match(
    await request({ boundObjectRef: web, audiences: ['bank'] }),
    { code: 403 },
    'of a driver that it does not use',
  )
})

const administrator: Identity = { user: 'admin', groups: ['system:masters'] }

test('a node gets no other token', async (t) => {
  const { ask, store, issued, created, request } = await world(t)
  const web = await created('web', { nodeName: 'pi-1', serviceAccountName: 'reader', volumes: [vault] })
  const plain = await created('plain', { nodeName: 'pi-1' })
  const elsewhere = await created('elsewhere', { nodeName: 'pi-2', serviceAccountName: 'reader' })
  const unread = await created('unread', {
    nodeName: 'pi-1',
    serviceAccountName: 'reader',
    automountServiceAccountToken: false,
  })
  const uid = `the UID in the bound object reference (other) does not match the UID in record. The object might have been deleted and then recreated`
  const audience = (name: string) =>
    `audience "${name}" not found in pod spec volume, system:node:pi-1 is not authorized to request tokens for this audience`
  for (const [spec, because] of [
    [{}, 'node requested token not bound to a pod'],
    [{ boundObjectRef: { ...web, kind: 'Node' } }, 'node requested token not bound to a pod'],
    [{ boundObjectRef: { ...web, apiVersion: 'v2' } }, 'node requested token not bound to a pod'],
    [{ boundObjectRef: { ...web, name: '' } }, 'node requested token not bound to a pod'],
    [{ boundObjectRef: { ...web, uid: '' } }, 'node requested token with a pod binding without a uid'],
    [{ boundObjectRef: { ...web, uid: 'other' } }, uid],
    [{ boundObjectRef: elsewhere }, 'node requested token bound to a pod scheduled on a different node'],
    [{ boundObjectRef: web, audiences: ['bank'] }, audience('bank')],
    [{ boundObjectRef: web, audiences: ['vault', 'vault'] }, 'node may only request 0 or 1 audiences'],
    [{ boundObjectRef: unread }, audience('')],
  ] satisfies [Document, string][]) {
    const { code, body } = await request({ expirationSeconds: 3607, ...spec })
    t.equal(body['message'], `serviceaccounts "reader" is forbidden: ${because}`)
    t.equal(code, 403)
  }
  t.match(await request({ boundObjectRef: { ...web, name: 'gone' } }), {
    code: 404,
    body: { message: 'pods "gone" not found' },
  })
  t.match(await request({ boundObjectRef: plain }), {
    code: 400,
    body: {
      message: 'cannot bind token for serviceaccount "reader" to pod running with different serviceaccount name.',
    },
  })
  t.match(await request({ boundObjectRef: web }, nodeIdentity('pi-3')), {
    code: 403,
    body: { message: /^serviceaccounts "reader" is forbidden: User "system:node:pi-3" cannot create resource/ },
  })
  t.match(await request({ boundObjectRef: web }, pi1, 'admin'), { code: 403 })
  const claimed = await store.get('pods', { namespace: 'default', name: 'web' })
  if (claimed === undefined) throw new Error('no pod')
  const annotations = { [learntFromAnnotation]: 'pi-1' }
  await store.update('pods', { ...claimed, metadata: { ...claimed.metadata, annotations } })
  t.match(await request({ boundObjectRef: web }), {
    code: 403,
    body: { message: /is forbidden: node requested token bound to a pod of its own checkpoint/ },
  })
  await ask('DELETE', `${podsPath}/web?gracePeriodSeconds=0`)
  t.match(await request({ boundObjectRef: web }), { code: 404 }, 'of a pod that was deleted')
  t.same(issued, [])
})
