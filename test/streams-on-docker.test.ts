/** kubectl's streams on real parts: kubectl, controller, agent and Docker. */
import { test } from 'tap'
import { joinedFleet } from './support/joined-fleet.ts'
import { image } from './support/pods.ts'
import { eventually } from './support/wait.ts'

type Script = { readonly name: string; readonly script: string }

function manifest(name: string, containers: readonly Script[], spec: object = {}): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: name } },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: containers.map(({ name, script }) => ({ name, image, command: ['sh', '-c', script] })),
      ...spec,
    },
  })
}

test('kubectl logs', async (t) => {
  const { controller, startReady } = await joinedFleet(t)
  const [agent] = await startReady()
  const { kubectl, kubectlWith, tryKubectl } = controller
  const run = async (text: string, name: string, condition = 'condition=Ready') => {
    await kubectlWith(text, 'apply', '-f', '-')
    await kubectl('wait', `--for=${condition}`, `pod/${name}`, '--timeout=80s')
  }
  const refusal = async (...args: readonly string[]) => {
    const { code, stderr } = await tryKubectl(...args)
    t.equal(code, 1, args.join(' '))
    return stderr.trim()
  }

  await t.test('of one container, with every option', async (t) => {
    const script = 'for i in 1 2 3; do echo "line $i"; done; sleep 0.5; echo wrong >&2; exec sleep 1000'
    await run(manifest('one', [{ name: 'main', script }]), 'one')
    await eventually('it has written all', async () => (await kubectl('logs', 'one')).includes('wrong'))
    t.equal(await kubectl('logs', 'one'), 'line 1\nline 2\nline 3\nwrong\n')
    t.equal(await kubectl('logs', 'one', '--tail=2'), 'line 3\nwrong\n')
    t.equal(await kubectl('logs', 'one', '--tail=0'), '')
    t.equal(await kubectl('logs', 'one', '--limit-bytes=9'), 'line 1\nli')
    t.match(await kubectl('logs', 'one', '--timestamps', '--tail=1'), /^20\d\d-\d\d-\d\dT[\d:.]{18}Z wrong\n$/)
    t.equal(await kubectl('logs', 'one', '--since=1h', '--tail=1'), 'wrong\n')
    t.equal(await kubectl('logs', 'one', '--since-time=2999-01-01T00:00:00Z'), '')
    const times = await kubectl('logs', 'one', '--timestamps')
    const third = times.split('\n')[2]?.split(' ')[0] ?? ''
    const since = await kubectl('get', '--raw', `/api/v1/namespaces/default/pods/one/log?sinceTime=${third}`)
    t.equal(since, 'line 3\nwrong\n', 'to the nanosecond')
    t.equal(await kubectl('logs', '-l', 'app=one', '--prefix', '--tail=1'), '[pod/one/main] wrong\n')
  })

  await t.test('of several containers', async (t) => {
    const spec = { initContainers: [{ name: 'before', image, command: ['echo', 'prepared'] }] }
    const [a, b] = ['a', 'b'].map((name) => ({ name, script: `echo ${name}; exec sleep 1000` }))
    if (a === undefined || b === undefined) return
    await run(manifest('pair', [a, b], spec), 'pair')
    t.equal(await kubectl('logs', 'pair', '-c', 'b'), 'b\n')
    t.equal(await kubectl('logs', 'pair', '-c', 'before'), 'prepared\n')
    const lines = (await kubectl('logs', 'pair', '--all-containers')).split('\n').sort()
    t.same(lines, ['', 'a', 'b', 'prepared'])
    const raw = (query: string) => refusal('get', '--raw', `/api/v1/namespaces/default/pods/pair/log${query}`)
    t.equal(
      await raw(''),
      'Error from server (BadRequest): a container name must be specified for pod pair, choose one of: [a b] or one of the init containers: [before]',
    )
    t.equal(await raw('?container=c'), 'Error from server (BadRequest): container c is not valid for pod pair')
    t.equal(
      await raw('?container=a&tailLines=-1'),
      'The PodLogOptions "pair" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0',
    )
    t.match(await raw('?container=a&tailLines=x'), /strconv.ParseInt: parsing "x": invalid syntax/)
  })

  await t.test('of the container before, and of one that has not started', async (t) => {
    const script = 'echo "start $(cat /proc/uptime)"; sleep 1; exit 3'
    await kubectlWith(manifest('crasher', [{ name: 'main', script }]), 'apply', '-f', '-')
    t.equal(
      await eventually('a first log', async () => {
        const { stdout, stderr } = await tryKubectl('logs', 'crasher', '--previous')
        return stdout === '' && stderr.trim()
      }),
      'Error from server (BadRequest): previous terminated container "main" in pod "crasher" not found',
    )
    const previous = await eventually('a previous log', async () => {
      const { code, stdout } = await tryKubectl('logs', 'crasher', '--previous')
      return code === 0 && stdout
    })
    t.match(previous, /^start [\d.]+ [\d.]+\n$/)
    const missing = { name: 'main', image: '127.0.0.1:1/none:1' }
    await kubectlWith(manifest('absent', [], { containers: [missing] }), 'apply', '-f', '-')
    const waiting = await eventually('it waits', async () => {
      const { stderr } = await tryKubectl('logs', 'absent')
      return /pull/.test(stderr) && stderr.trim()
    })
    t.match(
      waiting,
      /^Error from server \(BadRequest\): container "main" in pod "absent" is waiting to start: (image can't be pulled|trying and failing to pull image)$/,
    )
  })

  await t.test('followed to the end of the container', async (t) => {
    const script = 'for i in 1 2 3 4; do echo $i; sleep 0.5; done'
    await kubectlWith(manifest('short', [{ name: 'main', script }], { restartPolicy: 'Never' }), 'apply', '-f', '-')
    await eventually('it has started', async () => (await tryKubectl('logs', 'short')).code === 0)
    t.equal(await kubectl('logs', '-f', 'short'), '1\n2\n3\n4\n')
    t.equal(await kubectl('logs', 'short', '--tail=1'), '4\n')
  })

  await t.test('of lines that Docker cuts, and in sizes that it keeps', async (t) => {
    const script = `x=$(head -c 40000 /dev/zero | tr '\\0' x); echo "$x"; echo end; exec sleep 1000`
    await run(manifest('wide', [{ name: 'main', script }]), 'wide')
    t.equal(await kubectl('logs', 'wide'), `${'x'.repeat(40_000)}\nend\n`)
    const [first, second] = (await kubectl('logs', 'wide', '--timestamps')).split('\n')
    t.match(first, /^20\S+Z x{40000}$/)
    t.match(second, /^20\S+Z end$/)
  })

  await t.test('of a node that is away is an error at once', async (t) => {
    await agent.stop()
    const before = Date.now()
    t.equal(
      await refusal('logs', 'one'),
      'Error from server (ServiceUnavailable): node "pi-1" has no connection to the controller',
    )
    t.ok(Date.now() - before < 3_000)
  })
})
