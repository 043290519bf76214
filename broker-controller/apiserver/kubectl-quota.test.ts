import { test } from 'tap'
import { quietLog } from '../../daemon/testing/quiet-log.ts'
import { startApi } from '../testing/api-under-test.ts'
import { whyNoKubectl } from '../testing/kubectl.ts'

test('kubectl and the limits of a namespace', { skip: whyNoKubectl() }, async (t) => {
  const api = await startApi({ log: quietLog(t) })
  t.teardown(api.stop)
  const { kubectl } = api
  const ok = async (args: readonly string[], input = '') => {
    const ran = await kubectl(args, { input })
    t.equal(ran.code, 0, `kubectl ${args.join(' ')} ${ran.stderr}`)
    return ran.stdout
  }

  await t.test('create quota, get and describe it', async (t) => {
    t.match(await ok(['create', 'quota', 'mine', '--hard=cpu=1,pods=2,secrets=5']), 'resourcequota/mine created')
    await ok(['create', 'quota', 'best', '--hard=pods=100', '--scopes=BestEffort'])
    await ok(['wait', 'quota/mine', '--for=jsonpath={.status.used.pods}=0', '--timeout=20s'])
    t.match(
      await ok(['get', 'quota', 'mine']),
      /NAME +AGE +REQUEST +LIMIT\nmine +\d+s +cpu: 0\/1, pods: 0\/2, secrets: 0\/5/,
    )
    t.match(
      await ok(['describe', 'quota', 'mine']),
      /Resource +Used +Hard\n-+ +-+ +-+\ncpu +0 +1\npods +0 +2\nsecrets +0 +5/,
    )
    t.match(
      await ok(['describe', 'quota', 'best']),
      /Scopes: +BestEffort\n \* Matches all pods that do not have resource/,
    )
    t.match(await ok(['describe', 'namespace', 'default']), /Resource Quotas/)
  })

  await t.test('a pod that is over the quota is refused, and one within it is counted', async (t) => {
    const run = ['run', '--image=busybox:1.36']
    const bare = await kubectl([...run, 'bare'])
    t.equal(bare.code, 1)
    t.equal(
      bare.stderr,
      'Error from server (Forbidden): pods "bare" is forbidden: failed quota: mine: must specify cpu for: bare\n',
    )
    const asking = (cpu: string) =>
      `--overrides={"spec":{"containers":[{"name":"m","image":"i","resources":{"requests":{"cpu":"${cpu}"}}}]}}`
    await ok([...run, 'one', asking('600m')])
    const two = await kubectl([...run, 'two', asking('500m')])
    t.equal(
      two.stderr,
      'Error from server (Forbidden): pods "two" is forbidden: exceeded quota: mine, requested: cpu=500m, used: cpu=600m, limited: cpu=1\n',
    )
    await ok(['wait', 'quota/mine', '--for=jsonpath={.status.used.cpu}=600m', '--timeout=20s'])
    await ok(['delete', 'pod', 'one'])
    await ok(['wait', 'quota/mine', '--for=jsonpath={.status.used.cpu}=0', '--timeout=20s'])
    await ok(['delete', 'quota', 'mine'])
  })

  await t.test('describe limits', async (t) => {
    const range = {
      apiVersion: 'v1',
      kind: 'LimitRange',
      metadata: { name: 'mine' },
      spec: {
        limits: [{ type: 'Container', max: { cpu: '2' }, default: { cpu: '1' }, defaultRequest: { cpu: '100m' } }],
      },
    }
    t.equal(await ok(['apply', '-f', '-'], JSON.stringify(range)), 'limitrange/mine created\n')
    t.match(await ok(['describe', 'limits', 'mine']), /Container +cpu +- +2 +100m +1 +-/)
    t.match(await ok(['get', 'limits']), /NAME +CREATED AT\nmine +20/)
    await ok(['run', 'one', '--image=busybox:1.36'])
    t.match(
      await ok(['describe', 'pod', 'one']),
      /limit-ranger: +LimitRanger plugin set: cpu request for container one; cpu limit for/,
    )
    t.match(await ok(['explain', 'quota.spec.scopeSelector']), 'ScopeSelector')
    t.match(await ok(['explain', 'limits.spec.limits']), 'LimitRangeItem')
  })
})
