import { test } from 'tap'
import { homeAssistantIdentity } from '../../../api/identity.ts'
import { aNode } from '../../../api/testing/builders.ts'
import { defaultClusterRoleBindings, defaultClusterRoles } from '../../default-roles/default-roles.ts'
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
