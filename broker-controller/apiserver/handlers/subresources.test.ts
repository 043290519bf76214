import { test } from 'tap'
import type { Identity } from '../../../api/identity.ts'
import { newKey } from '../../../certs/authority.ts'
import { createClientCSR } from '../../../certs/client-csr.ts'
import { anApi, type Document, patchTypes } from '../../testing/api-in-memory.ts'
import { podsPath, sentPod } from '../../testing/sent-objects.ts'

test('a pod is bound once', async (t) => {
  const { ask } = await anApi(t)
  await ask('POST', podsPath, { body: sentPod('web') })
  const bind = (name: string) =>
    ask('POST', `${podsPath}/web/binding`, {
      body: { apiVersion: 'v1', kind: 'Binding', metadata: { name: 'web' }, target: { kind: 'Node', name } },
    })
  t.match(await bind('pi-01'), { code: 201, body: { status: 'Success' } })
  t.match(await ask('GET', `${podsPath}/web`), {
    body: { spec: { nodeName: 'pi-01' }, status: { conditions: [{ type: 'PodScheduled', status: 'True' }] } },
  })
  t.match(await bind('pi-02'), { code: 409, body: { message: /already assigned to node "pi-01"/ } })
})

test('a pod with claims is not bound to a node whose agent does not mount them', async (t) => {
  const { ask } = await anApi(t)
  await ask('POST', podsPath, {
    body: sentPod('web', { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] }),
  })
  const register = (name: string, annotations: object) =>
    ask('POST', '/api/v1/nodes', { body: { apiVersion: 'v1', kind: 'Node', metadata: { name, annotations } } })
  await register('old', { 'bramble.dev/hardware-identity': '{}' })
  await register('new', { 'bramble.dev/hardware-identity': '{}', 'bramble.dev/mounts-claims': 'true' })
  const bind = (name: string) =>
    ask('POST', `${podsPath}/web/binding`, {
      body: { apiVersion: 'v1', kind: 'Binding', metadata: { name: 'web' }, target: { kind: 'Node', name } },
    })
  t.match(await bind('old'), {
    code: 409,
    body: {
      message: /node "old" runs a version of bramble-agent that does not mount persistentVolumeClaims: update it/,
    },
  })
  t.match(await bind('new'), { code: 201 })
})

test('ephemeral containers are added through their subresource, and stay', async (t) => {
  const { ask } = await anApi(t)
  const look = { name: 'look', image: 'busybox', targetContainerName: 'main' }
  t.match(await ask('POST', podsPath, { body: sentPod('early', { ephemeralContainers: [look] }) }), {
    code: 422,
    body: { message: /spec\.ephemeralContainers: Forbidden: cannot be set on create/ },
  })
  await ask('POST', podsPath, { body: sentPod('web') })
  const add = (more: Document, path = '/ephemeralcontainers', name = 'web') => {
    const body = { spec: { ephemeralContainers: [{ ...look, ...more }] } }
    return ask('PATCH', `${podsPath}/${name}${path}`, { type: patchTypes.strategic, body })
  }
  t.match(await add({}, ''), { code: 422, body: { message: /spec\.ephemeralContainers: Forbidden/ } })
  t.match(await add({}), { code: 200, body: { spec: { ephemeralContainers: [{ imagePullPolicy: 'Always' }] } } })
  t.match(await ask('GET', `${podsPath}/web/ephemeralcontainers`), {
    code: 200,
    body: { spec: { ephemeralContainers: [{ name: 'look' }] } },
  })
  t.match(await add({ name: 'more' }), { body: { spec: { ephemeralContainers: { length: 2 } } } })
  t.match(await add({ image: 'other' }), { code: 422, body: { message: /containers "look" may not be changed/ } })
  t.match(await ask('PUT', `${podsPath}/web/ephemeralcontainers`, { body: sentPod('web') }), {
    code: 422,
    body: { message: /"more" may not be removed.*"look" may not be removed/ },
  })
  const annotations = { 'kubernetes.io/config.mirror': 'hash' }
  await ask('POST', podsPath, { body: sentPod('mirror', { nodeName: 'pi' }, { annotations }) })
  t.match(await add({}, '/ephemeralcontainers', 'mirror'), {
    code: 422,
    body: { message: /static pods do not support ephemeral containers/ },
  })
})

test('a certificate request is created by one user and approved by another', async (t) => {
  const { ask } = await anApi(t)
  const csrs = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
  const machine: Identity = { user: 'system:bootstrap:abcdef', groups: ['system:bootstrappers'] }
  const request = Buffer.from(createClientCSR({ user: 'ann', groups: [] }, newKey())).toString('base64')
  const body = {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'node-csr-1' },
    spec: {
      request,
      signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
      usages: ['digital signature', 'client auth'],
      username: 'system:masters',
    },
  }
  const asked = await ask('POST', csrs, { body, as: machine })
  t.match(
    asked,
    { code: 201, body: { spec: { username: 'system:bootstrap:abcdef' } } },
    'the server sets the user name',
  )
  const path = `${csrs}/node-csr-1`
  t.match(await ask('GET', path, { as: machine }), { code: 200 })
  const verdict = { type: 'Approved', status: 'True', reason: 'ByHand' }
  const approval = {
    type: patchTypes.merge,
    body: { metadata: { annotations: { by: 'hand' } }, status: { conditions: [verdict], certificate: 'Zm9yZ2Vk' } },
  }
  t.match(await ask('PATCH', `${path}/approval`, { ...approval, as: machine }), { code: 403 })
  const approved = await ask('PATCH', `${path}/approval`, approval)
  t.match(approved.body, {
    metadata: { annotations: { by: 'hand' } },
    status: { conditions: [{ ...verdict, lastUpdateTime: /Z$/ }], certificate: undefined },
  })
  const signed = await ask('PATCH', `${path}/status`, {
    type: patchTypes.merge,
    body: { status: { conditions: [], certificate: 'c2lnbmVk' } },
  })
  t.match(signed.body, { status: { conditions: [verdict], certificate: 'c2lnbmVk' } }, 'the verdict stays')
  const both = { conditions: [verdict, { type: 'Denied', status: 'True' }] }
  const changed = (conditions: readonly Document[]) =>
    ask('PATCH', `${path}/approval`, { type: patchTypes.merge, body: { status: { conditions } } })
  t.match(await changed(both.conditions), { code: 422 })
  t.match(await changed([]), { code: 422, body: { message: /may not remove a condition of type "Approved"/ } })
  t.match(await changed([{ ...verdict, status: 'False' }]), { code: 422 })
})

test('finalize writes the finalizers of a namespace, and no other request does', async (t) => {
  const { ask } = await anApi(t)
  const path = '/api/v1/namespaces/team'
  const created = await ask('POST', '/api/v1/namespaces', {
    body: { metadata: { name: 'team' }, spec: { finalizers: [] } },
  })
  t.match(created.body, { spec: { finalizers: ['kubernetes'] }, status: { phase: 'Active' } })
  const finalizers = ['kubernetes', 'example.com/data']
  const body = { metadata: { name: 'team' }, spec: { finalizers } }
  t.match((await ask('PUT', path, { body })).body, { spec: { finalizers: ['kubernetes'] } })
  t.match(await ask('PUT', `${path}/finalize`, { body }), {
    code: 200,
    body: { spec: { finalizers }, status: { phase: 'Active' } },
  })
  t.same((await ask('PUT', path, { body: { metadata: { name: 'team' } } })).body['spec'], { finalizers })
  t.match(await ask('PUT', `${path}/finalize`, { body: { ...body, spec: { finalizers: ['data'] } } }), {
    code: 422,
    body: { details: { causes: [{ field: 'spec.finalizers[0]' }] } },
  })
})
