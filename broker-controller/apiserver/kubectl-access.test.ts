import { test } from 'tap'
import { systemClock } from '../../daemon/clock.ts'
import { runLoops } from '../../daemon/run.ts'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { roleAggregationController } from '../controllers/accounts-and-roles/role-aggregation-controller.ts'
import { ensureDefaultRoles } from '../default-roles/reconcile-roles.ts'
import { startApi } from '../testing/api-under-test.ts'
import { whyNoKubectl } from '../testing/kubectl.ts'

test('kubectl makes, shows and reconciles roles and bindings', { skip: whyNoKubectl() }, async (t) => {
  const api = await startApi({ log: quietLog(t) })
  t.teardown(api.stop)
  const { kubectl } = api
  const ok = async (...args: readonly string[]) => {
    const ran = await kubectl(args)
    t.equal(ran.code, 0, `kubectl ${args.join(' ')} ${ran.code === 0 ? '' : ran.stderr}`)
    return ran.stdout
  }

  await t.test('create, get and describe', async (t) => {
    await ok('create', 'role', 'reader', '--verb=get,list', '--resource=pods', '--resource-name=web')
    await ok('create', 'clusterrole', 'ops', '--verb=get', '--resource=nodes')
    await ok('create', 'clusterrole', 'health', '--verb=get', '--non-resource-url=/healthz')
    await ok('create', 'clusterrole', 'all', '--aggregation-rule=team=a')
    await ok(
      'create',
      'rolebinding',
      'readers',
      '--role=reader',
      '--user=eve',
      '--group=team',
      '--serviceaccount=default:ci',
    )
    await ok('create', 'clusterrolebinding', 'operators', '--clusterrole=ops', '--group=ops')
    t.match(
      await ok('get', 'rolebindings', '-o', 'wide'),
      /NAME +ROLE +AGE +USERS +GROUPS +SERVICEACCOUNTS\nreaders +Role\/reader +\d+s +eve +team +default\/ci/,
    )
    t.match(await ok('get', 'clusterrolebindings', 'operators'), /NAME +ROLE +AGE\noperators +ClusterRole\/ops +\d+s/)
    t.match(await ok('get', 'roles'), /NAME +CREATED AT\nreader +\d{4}-\d\d-\d\dT/)
    t.match(await ok('describe', 'role', 'reader'), /pods +\[\] +\[web\] +\[get list\]/)
    t.match(await ok('get', 'clusterrole', 'health', '-o', 'jsonpath={.rules[0].nonResourceURLs}'), '["/healthz"]')
    t.match(await ok('get', 'clusterrole', 'all', '-o', 'jsonpath={.aggregationRule}'), '{"matchLabels":{"team":"a"}}')
  })

  await t.test('a binding keeps its role', async (t) => {
    const changed = await kubectl([
      'create',
      'rolebinding',
      'readers',
      '--clusterrole=ops',
      '--user=eve',
      '-o',
      'yaml',
      '--dry-run=client',
    ])
    const replaced = await kubectl(['replace', '-f', '-'], { input: changed.stdout })
    t.equal(replaced.code, 1)
    t.match(replaced.stderr, /The RoleBinding "readers" is invalid: roleRef: Invalid value: .*: cannot change roleRef/)
  })

  await t.test('auth reconcile creates and extends', async (t) => {
    const manifest = (verbs: string) => `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: deployer}
rules: [{apiGroups: [''], resources: [pods], verbs: [${verbs}]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: deployers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: deployer}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: eve}]
`
    for (const verbs of ['get', 'get, delete']) {
      const ran = await kubectl(['auth', 'reconcile', '-f', '-'], { input: manifest(verbs) })
      t.equal(ran.code, 0, ran.stderr)
      t.match(ran.stdout, 'clusterrole.rbac.authorization.k8s.io/deployer reconciled')
    }
    t.match(await ok('get', 'clusterrole', 'deployer', '-o', 'jsonpath={.rules}'), '"delete"')
    t.match(await ok('get', 'clusterrolebinding', 'deployers', '-o', 'jsonpath={.subjects[*].name}'), 'eve')
  })
})

test('kubectl does what the roles of its user allow', { skip: whyNoKubectl() }, async (t) => {
  const log = quietLog(t)
  const api = await startApi({ log })
  const { kubectl, store } = api
  await ensureDefaultRoles({ store, clock: systemClock })
  const stopping = new AbortController()
  const aggregating = runLoops([roleAggregationController({ store, clock: systemClock, log })], stopping.signal, log)
  t.teardown(async () => {
    stopping.abort()
    await aggregating
    await api.stop()
  })
  const kubeconfig = await api.kubeconfigFor('eve', api.issueFor({ user: 'eve', groups: ['team'] }))
  const admin = async (...args: readonly string[]) => {
    const ran = await kubectl(args)
    t.equal(ran.code, 0, `kubectl ${args.join(' ')} ${ran.stderr}`)
  }
  const eve = async (...args: readonly string[]) => kubectl(args, { kubeconfig })
  const allowed = async (...args: readonly string[]) => {
    const ran = await eve(...args)
    t.equal(ran.code, 0, `eve: kubectl ${args.join(' ')} ${ran.stderr}`)
    return ran.stdout
  }
  const refused = async (...args: readonly string[]) => {
    const ran = await eve(...args)
    t.equal(ran.code, 1, `eve: kubectl ${args.join(' ')}`)
    return ran.stderr
  }

  await t.test('auth whoami and auth can-i', async (t) => {
    t.match(await allowed('auth', 'whoami'), /ATTRIBUTE +VALUE\nUsername +eve\nGroups +\[team system:authenticated\]/)
    const no = await eve('auth', 'can-i', 'list', 'pods')
    t.match(no, { code: 1, stdout: 'no\n' })
    t.match(await allowed('auth', 'can-i', 'get', '/api'), 'yes')
    t.match(await kubectl(['auth', 'can-i', 'delete', 'nodes']), { code: 0, stdout: /^yes/ })
    const list = await allowed('auth', 'can-i', '--list')
    t.match(list, /Resources +Non-Resource URLs +Resource Names +Verbs/)
    t.match(list, /selfsubjectaccessreviews.authorization.k8s.io +\[\] +\[\] +\[create\]/)
    t.match(list, /\[\/api\/\*\] +\[\] +\[get\]/)
    t.match((await kubectl(['auth', 'can-i', '--list'])).stdout, /\*\.\* +\[\] +\[\] +\[\*\]/)
    const review = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: { user: 'eve', groups: ['system:masters'], resourceAttributes: { verb: 'get', resource: 'nodes' } },
    }
    const asked = await kubectl(['create', '-f', '-', '-o', 'jsonpath={.status}'], { input: JSON.stringify(review) })
    t.match(asked, { code: 0, stdout: '{"allowed":true}' })
    t.match((await eve('create', '-f', '-')).code, 1)
  })

  await t.test('a user acts as another where a role allows it', async (t) => {
    t.match(
      await refused('get', '--raw', '/api/v1/pods', '--as', 'adam'),
      'users "adam" is forbidden: User "eve" cannot impersonate resource "users" in API group "" at the cluster scope',
    )
    await admin(
      'create',
      'clusterrole',
      'deputy',
      '--verb=impersonate',
      '--resource=users,groups',
      '--resource-name=adam',
      '--resource-name=others',
    )
    await admin('create', 'clusterrolebinding', 'deputies', '--clusterrole=deputy', '--user=eve')
    t.match(
      await allowed('auth', 'whoami', '--as', 'adam', '--as-group', 'others'),
      /adam\nGroups +\[others system:authenticated\]/,
    )
    t.match(await refused('get', '--raw', '/api/v1/pods', '--as', 'adam'), 'User "adam" cannot list resource "pods"')
    t.match(
      await refused('get', '--raw', '/api/v1/pods', '--as', 'adam', '--as-group', 'system:masters'),
      'groups "system:masters" is forbidden',
    )
    t.match(await refused('get', '--raw', '/api/v1/pods', '--as', 'root'), 'users "root" is forbidden')
    const account = await kubectl(['auth', 'whoami', '--as', 'system:serviceaccount:default:ci', '--as-uid', 'u1'])
    t.match(
      account.stdout,
      /UID +u1\nGroups +\[system:serviceaccounts system:serviceaccounts:default system:authenticated\]/,
    )
  })

  await t.test('every user reads discovery and the version, and nothing else', async (t) => {
    t.match(await allowed('api-resources'), 'rolebindings')
    t.match(await allowed('version'), 'Server Version: v1.32')
    t.equal(
      await refused('get', 'pods'),
      'Error from server (Forbidden): pods is forbidden: User "eve" cannot list resource "pods" in API group "" in the namespace "default"\n',
    )
    t.match(
      await refused('get', 'nodes'),
      'nodes is forbidden: User "eve" cannot list resource "nodes" in API group "" at the cluster scope',
    )
    t.match(await refused('get', '--raw', '/metrics'), 'forbidden: User "eve" cannot get path "/metrics"')
    t.match(
      await refused('get', 'ns', 'default'),
      'namespaces "default" is forbidden: User "eve" cannot get resource "namespaces" in API group "" in the namespace "default"',
    )
  })

  await t.test('a binding to view opens one namespace for reading, without its secrets', async (t) => {
    await admin('create', 'rolebinding', 'viewers', '--clusterrole=view', '--group=team')
    t.match(await allowed('get', 'pods', '-o', 'name'), '')
    t.match(await allowed('get', 'ns', 'default', '-o', 'name'), 'namespace/default')
    t.match(await refused('get', 'pods', '-A'), 'at the cluster scope')
    t.match(await refused('get', 'pods', '-n', 'kube-system'), 'in the namespace "kube-system"')
    t.match(await refused('get', 'secrets'), 'cannot list resource "secrets"')
    t.match(await refused('create', 'configmap', 'x'), 'cannot create resource "configmaps"')
  })

  await t.test('an admin of a namespace grants only what it may do itself', async (t) => {
    await admin('create', 'rolebinding', 'admins', '--clusterrole=admin', '--user=eve')
    await allowed('create', 'role', 'reader', '--verb=get', '--resource=pods')
    await allowed('create', 'rolebinding', 'readers', '--role=reader', '--user=adam')
    await allowed('create', 'rolebinding', 'editors', '--clusterrole=edit', '--user=adam')
    t.equal(
      await refused('create', 'role', 'more', '--verb=get,delete', '--resource=nodes'),
      'Error from server (Forbidden): roles.rbac.authorization.k8s.io "more" is forbidden: user "eve" ' +
        '(groups=["team" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n' +
        '{APIGroups:[""], Resources:["nodes"], Verbs:["get" "delete"]}\n',
    )
    t.match(
      await refused('create', 'rolebinding', 'roots', '--clusterrole=cluster-admin', '--user=eve'),
      /rolebindings.rbac.authorization.k8s.io "roots" is forbidden: user "eve" .*not currently held:\n\{APIGroups:\["\*"\]/s,
    )
    t.match(
      await refused('create', 'rolebinding', 'none', '--clusterrole=nothing', '--user=eve'),
      'clusterroles.rbac.authorization.k8s.io "nothing" not found',
    )
    const patch = '{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}'
    t.match(
      await refused('patch', 'role', 'reader', '-p', patch),
      'roles.rbac.authorization.k8s.io "reader" is forbidden',
    )
    t.match(
      await refused('create', 'clusterrole', 'x', '--verb=get', '--resource=pods'),
      'cannot create resource "clusterroles"',
    )
  })

  await t.test('the verbs bind and escalate allow to grant more', async () => {
    const rules = ['--verb=bind', '--resource=clusterroles.rbac.authorization.k8s.io', '--resource-name=cluster-admin']
    await admin('create', 'clusterrole', 'binder', ...rules)
    await admin('create', 'rolebinding', 'binders', '--clusterrole=binder', '--user=eve')
    await allowed('create', 'rolebinding', 'roots', '--clusterrole=cluster-admin', '--user=eve')
    await admin('delete', 'rolebinding', 'roots')
    await admin('create', 'role', 'escalator', '--verb=escalate', '--resource=roles.rbac.authorization.k8s.io')
    await admin('create', 'rolebinding', 'escalators', '--role=escalator', '--user=eve')
    await allowed('create', 'role', 'more', '--verb=get', '--resource=nodes', '--dry-run=server')
    // The right must be there for the very name when a role is changed.
    const patch = '{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}'
    await allowed('patch', 'role', 'reader', '-p', patch)
  })
})

test('kubectl creates tokens of service accounts, and works with them', { skip: whyNoKubectl() }, async (t) => {
  const api = await startApi({ log: quietLog(t) })
  t.teardown(api.stop)
  const { kubectl, store } = api
  await ensureDefaultRoles({ store, clock: systemClock })
  const ok = async (...args: readonly string[]) => {
    const ran = await kubectl(args)
    t.equal(ran.code, 0, `kubectl ${args.join(' ')} ${ran.stderr}`)
    return ran.stdout.trim()
  }
  const anybody = await api.kubeconfigFor('anybody')
  const withToken = (token: string, ...args: readonly string[]) =>
    kubectl([...args, '--token', token], { kubeconfig: anybody })
  await ok('create', 'serviceaccount', 'ci')
  t.match(await ok('get', 'sa'), /NAME +SECRETS +AGE\nci +0 +\d+s/)
  t.match(await ok('describe', 'sa', 'ci'), /Name: +ci/)
  await ok('create', 'clusterrole', 'node-reader', '--verb=get,list', '--resource=nodes')
  await ok('create', 'clusterrolebinding', 'ci', '--clusterrole=node-reader', '--serviceaccount=default:ci')

  await t.test('a token is its service account', async (t) => {
    const token = await ok('create', 'token', 'ci', '--duration=20m')
    t.match(token, /^[\w-]+\.[\w-]+\.[\w-]{86}$/)
    t.match((await withToken(token, 'auth', 'whoami')).stdout, /Username +system:serviceaccount:default:ci/)
    t.equal((await withToken(token, 'get', 'nodes')).code, 0)
    t.match((await withToken(token, 'get', 'pods')).stderr, 'User "system:serviceaccount:default:ci" cannot list')
    t.match((await withToken(token, 'get', '--raw', '/openid/v1/jwks')).stdout, '"alg":"ES256"')
    t.match(
      (await withToken(token, 'get', '--raw', '/.well-known/openid-configuration')).stdout,
      '"issuer":"https://kubernetes.default.svc.cluster.local"',
    )
    const forged = `${token.slice(0, -4)}AAAA`
    t.match((await withToken(forged, 'get', 'nodes')).stderr, 'You must be logged in to the server')
    const review = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: { token, audiences: ['https://kubernetes.default.svc.cluster.local'] },
    }
    const reviewed = await kubectl(['create', '-f', '-', '-o', 'jsonpath={.status}'], { input: JSON.stringify(review) })
    t.match(reviewed.stdout, '"authenticated":true')
    const other = { ...review, spec: { token, audiences: ['vault'] } }
    const refused = await kubectl(['create', '-f', '-', '-o', 'jsonpath={.status}'], { input: JSON.stringify(other) })
    t.notMatch(refused.stdout, '"authenticated":true')
  })

  await t.test('a token that is bound to a secret ends with it', async (t) => {
    await ok('create', 'secret', 'generic', 'lease')
    const token = await ok('create', 'token', 'ci', '--bound-object-kind=Secret', '--bound-object-name=lease')
    t.equal((await withToken(token, 'get', 'nodes')).code, 0)
    await ok('delete', 'secret', 'lease')
    t.match((await withToken(token, 'get', 'nodes')).stderr, 'You must be logged in to the server')
  })

  await t.test('a request that cannot be met is refused in Kubernetes’ words', async (t) => {
    const refused = async (...args: readonly string[]) => {
      const ran = await kubectl(['create', 'token', ...args])
      t.equal(ran.code, 1, args.join(' '))
      return ran.stderr
    }
    t.match(await refused('none'), 'serviceaccounts "none" not found')
    t.match(await refused('ci', '--duration=1m'), 'may not specify a duration less than 10 minutes')
    t.match(await refused('ci', '--bound-object-kind=Pod', '--bound-object-name=x'), 'pods "x" not found')
    const audiences = Array.from({ length: 20 }, (_, index) => `--audience=a${index}`)
    t.match(await refused('ci', ...audiences), 'spec.audiences')
    const foreign = await api.kubeconfigFor('eve', api.issueFor({ user: 'eve', groups: [] }))
    const eve = await kubectl(['create', 'token', 'ci'], { kubeconfig: foreign })
    t.match(eve.stderr, 'cannot create resource "serviceaccounts/token"')
  })
})
