import { test } from 'tap'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
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
