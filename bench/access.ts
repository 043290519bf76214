/** Measures the duration of an authorization decision. `--help` prints the usage. */
import type { ClusterRole } from '../api/access/cluster-role.ts'
import type { RoleBinding } from '../api/access/role-binding.ts'
import type { Identity } from '../api/identity.ts'
import { openAuthorizer } from '../broker-controller/apiserver/authorization/authorizer.ts'
import type { Attributes } from '../broker-controller/apiserver/handlers/authorizer.ts'
import { defaultClusterRoleBindings, defaultClusterRoles } from '../broker-controller/default-roles/default-roles.ts'
import { memoryStore } from '../broker-controller/store/memory-store.ts'
import { systemClock as clock } from '../daemon/clock.ts'
import { openLog } from '../daemon/log.ts'
import { benchmarkOptions } from './options/benchmark-options.ts'

const decisions = 20_000
const runs = 9
const limitMicroseconds = 20
const { bindings } = benchmarkOptions({
  name: 'node dist/bench/access.js',
  text: `Measures a decision of RBAC in memory, as the API server makes it: for a user with one binding, one with all of them, and one with
none. Prints microseconds of CPU time for each decision, the median of ${runs} runs. Exits with 1 if one takes more than ${limitMicroseconds} µs.`,
  // One of the users is user-7.
  options: { bindings: { value: 'N', help: 'number of RoleBindings', range: [8, 100_000], default: '500' } },
})
const apiVersion = 'rbac.authorization.k8s.io/v1'

const store = memoryStore({ clock })
const log = openLog({ level: 'error', format: 'text', write: (line) => process.stderr.write(line) })
for (const role of defaultClusterRoles) await store.create('clusterroles', role)
for (const binding of defaultClusterRoleBindings) await store.create('clusterrolebindings', binding)
for (let index = 0; index < bindings; index++) {
  await store.create('clusterroles', roleAt(index))
  await store.create('rolebindings', bindingAt(index))
}
const access = await openAuthorizer({ store, clock, log })

const authenticated = 'system:authenticated'
const cases: readonly { readonly name: string; readonly identity: Identity; readonly resource: string }[] = [
  { name: 'one binding, allowed', identity: { user: 'user-7', groups: [authenticated] }, resource: 'kind-7' },
  { name: 'one binding, denied', identity: { user: 'user-7', groups: [authenticated] }, resource: 'secrets' },
  {
    name: 'every binding, allowed by the last',
    identity: { user: 'x', groups: ['everybody'] },
    resource: `kind-${bindings - 1}`,
  },
  { name: 'every binding, denied', identity: { user: 'x', groups: ['everybody'] }, resource: 'secrets' },
  { name: 'no binding, denied', identity: { user: 'x', groups: [authenticated] }, resource: 'secrets' },
]
let slowest = 0
for (const { name, identity, resource } of cases) {
  const took = await microseconds(identity, resource)
  slowest = Math.max(slowest, took)
  console.log(`${name.padEnd(36)} ${took.toFixed(2).padStart(8)} us`)
}
process.exitCode = slowest > limitMicroseconds ? 1 : 0

async function microseconds(identity: Identity, resource: string): Promise<number> {
  const attributes: Attributes = {
    kind: 'resource',
    verb: 'get',
    group: '',
    resource,
    subresource: '',
    namespace: 'default',
    name: 'some',
    fields: new Map(),
  }
  const times: number[] = []
  for (let run = 0; run < runs; run++) {
    const start = process.cpuUsage()
    for (let index = 0; index < decisions; index++) await access.decide(identity, attributes)
    const { user, system } = process.cpuUsage(start)
    times.push((user + system) / decisions)
  }
  return times.sort((one, other) => one - other)[Math.floor(runs / 2)] ?? 0
}

/** Each of three rules, for resources of its own, and one for all of a group. */
function roleAt(index: number): ClusterRole {
  const verbs = ['get', 'list', 'watch']
  const rules = [
    { verbs, apiGroups: [''], resources: [`kind-${index}`, `kind-${index}/status`] },
    { verbs, apiGroups: ['apps'], resources: ['deployments', 'replicasets'] },
    { verbs, apiGroups: [`group-${index}.example`], resources: ['*'] },
  ]
  return { apiVersion, kind: 'ClusterRole', metadata: { name: `role-${index}` }, rules }
}

function bindingAt(index: number): RoleBinding {
  return {
    apiVersion,
    kind: 'RoleBinding',
    metadata: { name: `binding-${index}`, namespace: 'default' },
    roleRef: { kind: 'ClusterRole', name: `role-${index}` },
    subjects: [
      { kind: 'User', name: `user-${index}` },
      { kind: 'Group', name: 'everybody' },
    ],
  }
}
