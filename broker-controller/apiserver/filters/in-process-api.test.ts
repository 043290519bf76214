import { test } from 'tap'
import { homeAssistantIdentity } from '../../../api/identity.ts'
import { rolloutKey, rolloutPath } from '../../../api/node/agent-rollout.ts'
import { aNode } from '../../../api/testing/builders.ts'
import {
  defaultClusterRoleBindings,
  defaultClusterRoles,
  defaultRoleBindings,
  defaultRoles,
} from '../../default-roles/default-roles.ts'
import { anApi } from '../../testing/api-in-memory.ts'
import { localRequests } from './in-process-api.ts'

const forever = new AbortController().signal
const cordon = {
  method: 'PATCH',
  path: '/api/v1/nodes/pi-1',
  contentType: 'application/merge-patch+json',
  body: { spec: { unschedulable: true } },
} as const

test('a part of the program acts with the rights of its user, and is audited as it', async (t) => {
  const { needs, store } = await anApi(t)
  const { resourceVersion: _, ...metadata } = aNode({ name: 'pi-1' }).metadata
  await store.create('nodes', { ...aNode({ name: 'pi-1' }), metadata })
  const audited: { readonly user: string | undefined; readonly verb: string; readonly code: number }[] = []
  const audit = {
    idFor: () => 'id',
    record: ({ sender, route, code }: Parameters<NonNullable<typeof needs.audit>['record']>[0]) =>
      void audited.push({ user: sender.identity?.user, verb: route.verb, code }),
  }
  const request = localRequests({ ...needs, audit }, 'test')
  t.match(await request(homeAssistantIdentity, cordon, forever), { code: 403, body: { kind: 'Status' } })
  for (const role of defaultClusterRoles) await store.create('clusterroles', role)
  for (const binding of defaultClusterRoleBindings) await store.create('clusterrolebindings', binding)
  const allowed = await request(homeAssistantIdentity, cordon, forever)
  t.match(allowed, { code: 200, body: { kind: 'Node', spec: { unschedulable: true } } })
  const secrets = { method: 'GET', path: '/api/v1/namespaces/default/secrets/x' } as const
  t.match(await request(homeAssistantIdentity, secrets, forever), { code: 403 })
  const deletion = { method: 'DELETE', path: '/api/v1/nodes/pi-1' } as const
  t.match(await request(homeAssistantIdentity, deletion, forever), { code: 403 })
  const user = 'bramble:home-assistant'
  t.match(audited.slice(0, 2), [
    { user, verb: 'patch', code: 403 },
    { user, verb: 'patch', code: 200 },
  ])
})

test('the user of the buttons may write the rollout, and no other object of its kind', async (t) => {
  const { needs, store } = await anApi(t)
  for (const role of defaultRoles) await store.create('roles', role)
  for (const binding of defaultRoleBindings) await store.create('rolebindings', binding)
  const request = localRequests(needs, 'test')
  const object = (metadata: { readonly namespace: string; readonly name: string }) => ({
    ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { rollout: '{}' } },
  })
  const apply = (path: string, body: unknown) =>
    request(
      homeAssistantIdentity,
      { method: 'PATCH', path, body, contentType: 'application/apply-patch+yaml', fieldManager: 'test' },
      forever,
    )
  t.match(await apply(rolloutPath, object(rolloutKey)), { code: 201 }, 'it is created by its name')
  const pause = { method: 'PATCH', path: rolloutPath, contentType: 'application/merge-patch+json' } as const
  const paused = await request(homeAssistantIdentity, { ...pause, body: { data: { pause: 'x' } } }, forever)
  t.match(paused, { code: 200, body: { data: { pause: 'x' } } })
  const stale = { metadata: { resourceVersion: '1' }, data: { pause: null } }
  t.match(await request(homeAssistantIdentity, { ...pause, body: stale }, forever), { code: 409 })
  for (const at of [
    { namespace: 'kube-system', name: 'other' },
    { namespace: 'default', name: rolloutKey.name },
  ]) {
    const path = `/api/v1/namespaces/${at.namespace}/configmaps`
    t.match(await apply(`${path}/${at.name}`, object(at)), { code: 403 }, `${at.namespace}/${at.name}`)
    const create = { method: 'POST', path, body: object(at) } as const
    t.match(await request(homeAssistantIdentity, create, forever), { code: 403 })
  }
})
