/** kubectl's streams on real parts: kubectl, controller, agent and Docker. */
import { execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { test } from 'tap'
import { WebSocket } from 'ws'
import { freePort } from '../agent/testing/free-port.ts'
import { adminOf } from './hostile/support/clients.ts'
import { type Controller, temporaryFolder } from './support/fleet.ts'
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

type Received = { readonly protocol: string; readonly messages: readonly Buffer[]; readonly code: number }

/** All messages of a WebSocket of the administrator, until the server closes it. */
async function messagesOf(
  { kubeconfig, apiUrl }: Controller,
  path: string,
  protocols: readonly string[],
): Promise<Received> {
  const { url: _, ...identity } = adminOf(await readFile(kubeconfig, 'utf8'))
  const socket = new WebSocket(`${apiUrl.replace('https', 'wss')}${path}`, [...protocols], identity)
  const messages: Buffer[] = []
  socket.on('message', (data: Buffer) => messages.push(data))
  const code = await new Promise<number>((resolve, reject) => {
    socket.once('error', reject)
    socket.once('close', resolve)
  })
  return { protocol: socket.protocol, messages, code }
}

test('kubectl logs', async (t) => {
  const agents = { containerLogMaxSize: '64Ki', containerLogMaxFiles: 2 }
  const { controller, startReady } = await joinedFleet(t, { agents })
  const [agent] = await startReady()
  const { kubectl, kubectlWith, tryKubectl } = controller
  const run = async (text: string, name: string, condition = 'condition=Ready') => {
    await kubectlWith(text, 'apply', '-f', '-')
    await kubectl('wait', `--for=${condition}`, `pod/${name}`, '--timeout=80s')
  }
  /** A container that is ready has been started, and may not have written yet. */
  const written = (last: string, ...log: readonly string[]) =>
    eventually(`${log} has ${last}`, async () => (await kubectl('logs', ...log, '--tail=1')) === `${last}\n`)
  const refusal = async (...args: readonly string[]) => {
    const { code, stderr } = await tryKubectl(...args)
    t.equal(code, 1, args.join(' '))
    return stderr.trim()
  }

  await t.test('of one container, with every option', async (t) => {
    const script =
      'for i in 1 2 3; do echo "line $i"; done; until [ -e /tmp/go ]; do sleep 0.1; done; echo wrong >&2; exec sleep 1000'
    await run(manifest('one', [{ name: 'main', script }]), 'one')
    // Docker reads the two outputs by themselves: what is written at one time may be in either order.
    await written('line 3', 'one')
    await kubectl('exec', 'one', '--', 'touch', '/tmp/go')
    await written('wrong', 'one')
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
    const logs = '/api/v1/namespaces/default/pods/one/log?tailLines=1'
    const socket = await messagesOf(controller, logs, ['binary.k8s.io'])
    t.same(
      socket.messages.map((one) => one.toString()),
      ['', 'wrong\n'],
    )
    t.equal(socket.code, 1000)
    const encoded = await messagesOf(controller, logs, ['base64.binary.k8s.io'])
    t.equal(encoded.messages.at(-1)?.toString(), Buffer.from('wrong\n').toString('base64'))
  })

  await t.test('of several containers', async (t) => {
    const spec = { initContainers: [{ name: 'before', image, command: ['echo', 'prepared'] }] }
    const [a, b] = ['a', 'b'].map((name) => ({ name, script: `echo ${name}; exec sleep 1000` }))
    if (a === undefined || b === undefined) return
    await run(manifest('pair', [a, b], spec), 'pair')
    for (const name of ['a', 'b']) await written(name, 'pair', '-c', name)
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
    const script = 'echo "start $(cat /proc/uptime)"; until [ -e /tmp/go ]; do sleep 0.1; done; exit 3'
    await run(manifest('crasher', [{ name: 'main', script }]), 'crasher')
    t.equal(
      await refusal('logs', 'crasher', '--previous'),
      'Error from server (BadRequest): previous terminated container "main" in pod "crasher" not found',
    )
    // Its end may be that of the command, too.
    await tryKubectl('exec', 'crasher', '--', 'touch', '/tmp/go')
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
    await written('end', 'wide')
    t.equal(await kubectl('logs', 'wide'), `${'x'.repeat(40_000)}\nend\n`)
    const [first, second] = (await kubectl('logs', 'wide', '--timestamps')).split('\n')
    t.match(first, /^20\S+Z x{40000}$/)
    t.match(second, /^20\S+Z end$/)
  })

  await t.test('of which the oldest files are removed', async (t) => {
    const script = 'i=0; while [ $i -lt 6000 ]; do echo "this is line $i"; i=$((i+1)); done; echo end; exec sleep 1000'
    await run(manifest('long', [{ name: 'main', script }]), 'long')
    await written('end', 'long')
    const lines = (await kubectl('logs', 'long')).split('\n')
    t.ok(lines.length > 500 && lines.length < 3_000, `${lines.length} lines are left`)
    const first = Number(/\d+$/.exec(lines[0] ?? '')?.[0])
    t.equal(lines.length - 2, 6_000 - first, 'without a gap')
  })

  await t.test('of a node that is away is an error, without a wait for the node', async (t) => {
    await agent.stop()
    t.equal(
      await refusal('logs', 'one'),
      'Error from server (ServiceUnavailable): node "pi-1" has no connection to the controller',
      'a request that waited for the node would end with the time that it waited',
    )
  })
})

test('kubectl exec, attach, cp and run', async (t) => {
  const { controller, startReady } = await joinedFleet(t)
  const [agent] = await startReady()
  const { kubectl, kubectlWith, tryKubectl } = controller
  await kubectlWith(manifest('shell', [{ name: 'main', script: 'exec sleep 1000' }]), 'apply', '-f', '-')
  await kubectl('wait', '--for=condition=Ready', 'pod/shell', '--timeout=80s')

  await t.test('a command has its output, its errors and its exit code', async (t) => {
    const ended = await tryKubectl('exec', 'shell', '--', 'sh', '-c', 'echo out; echo wrong >&2; exit 7')
    const verbose = await tryKubectl('-v=4', 'exec', 'shell', '--', 'true')
    t.notMatch(verbose.stderr, /fallback/i, 'over a WebSocket at once')
    t.match(ended, { code: 7, stdout: 'out\n', stderr: /^wrong\n/ })
    t.match(ended.stderr, /command terminated with exit code 7/)
    t.match(await tryKubectl('exec', 'shell', '--', 'true'), { code: 0, stdout: '', stderr: '' })
    const missing = await tryKubectl('exec', 'shell', '--', 'nothing-of-that-name')
    t.equal(missing.code, 126, missing.stderr)
    t.match(`${missing.stdout}${missing.stderr}`, /executable file not found/)
    const refused = await tryKubectl('exec', 'shell', '--', '/etc')
    t.equal(refused.code, 126, refused.stderr)
  })

  await t.test('input ends where the client ends it', async (t) => {
    t.equal(await kubectlWith('hello\nworld\n', 'exec', '-i', 'shell', '--', 'wc', '-l'), '2\n')
    const large = 'x'.repeat(3_000_000)
    t.equal(await kubectlWith(large, 'exec', '-i', 'shell', '--', 'wc', '-c'), '3000000\n')
  })

  await t.test('older clients speak SPDY', async (t) => {
    const spdy = async (input: string, ...args: readonly string[]) => {
      const env = { ...process.env, KUBECTL_REMOTE_COMMAND_WEBSOCKETS: 'false' }
      const running = promisify(execFile)('kubectl', ['--kubeconfig', controller.kubeconfig, ...args], { env })
      running.child.stdin?.end(input)
      return running.then(
        ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
        ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
      )
    }
    const ended = await spdy('', 'exec', 'shell', '--', 'sh', '-c', 'echo out; echo wrong >&2; exit 7')
    t.match(ended, { code: 7, stdout: 'out\n', stderr: /^wrong\n/ })
    const large = 'x'.repeat(3_000_000)
    t.match(await spdy(large, 'exec', '-i', 'shell', '--', 'wc', '-c'), { code: 0, stdout: '3000000\n' })
    const output = await spdy('', 'exec', 'shell', '--', 'head', '-c', '900000', '/dev/zero')
    t.equal(output.stdout.length, 900_000)
  })

  await t.test('a WebSocket of an early protocol has the output, and a text for a failure', async (t) => {
    const path = (command: string) =>
      `/api/v1/namespaces/default/pods/shell/exec?stdout=1&command=sh&command=-c&command=${encodeURIComponent(command)}`
    const text = (messages: readonly Buffer[]) => messages.map((one) => one.toString())
    const plain = await messagesOf(controller, path('echo out'), ['channel.k8s.io'])
    t.same(text(plain.messages), ['\u0001out\n'])
    t.equal(plain.protocol, 'channel.k8s.io')
    t.equal(plain.code, 1000)
    t.same(text((await messagesOf(controller, path('echo out'), [])).messages), ['\u0001out\n'])
    const failed = await messagesOf(controller, path('exit 7'), ['channel.k8s.io'])
    t.same(text(failed.messages), ['\u0003command terminated with non-zero exit code: exit status 7'])
    const encoded = await messagesOf(controller, path('echo out'), ['base64.channel.k8s.io'])
    t.same(text(encoded.messages), [`1${Buffer.from('out\n').toString('base64')}`])
    const refused = await messagesOf(controller, path('echo out'), ['v9.channel.k8s.io']).catch((error) => error)
    t.match(refused, { message: /400/ })
  })

  await t.test('a terminal has its size', async (t) => {
    const typed = [
      '--kubeconfig',
      controller.kubeconfig,
      'exec',
      '-it',
      'shell',
      '--',
      'sh',
      '-c',
      // The size comes after the start of the command.
      `'until stty size | grep "33 111"; do sleep 0.1; done; tty'`,
    ]
    const shell = `stty rows 33 cols 111; kubectl ${typed.join(' ')}`
    const { stdout } = await promisify(execFile)('script', ['-qec', shell, '/dev/null'], { timeout: 90_000 })
    t.match(stdout, /33 111\r\n\/dev\/pts\/\d+/)
  })

  await t.test('a terminal is resized while a command runs in it', async (t) => {
    const until = (size: string) => `until stty size 2>&1 | grep -q "${size}"; do sleep 0.1; done`
    const inside = `${until('33 111')}; echo has begun; ${until('44 99')}; echo is resized`
    const exec = `kubectl --kubeconfig ${controller.kubeconfig} exec -it shell -- sh -c '${inside}'`
    const running = promisify(execFile)('script', ['-qec', `stty rows 33 cols 111; tty; ${exec}`, '/dev/null'], {
      timeout: 90_000,
    })
    running.catch(() => undefined) // awaited below, perhaps only after it has failed
    let printed = ''
    running.child.stdout?.on('data', (piece: string) => {
      printed += piece
    })
    const own = await eventually('the command runs', () => /^(\/dev\/pts\/\d+)\r\nhas begun/.exec(printed)?.[1])
    await promisify(execFile)('stty', ['-F', own, 'rows', '44', 'cols', '99'])
    t.match((await running).stdout, /is resized/)
  })

  await t.test('files are copied both ways', async (t) => {
    const folder = await temporaryFolder(t)
    const content = randomBytes(5_000_000)
    await writeFile(join(folder, 'there'), content)
    await kubectl('cp', join(folder, 'there'), 'shell:/tmp/here')
    await kubectl('cp', 'shell:/tmp/here', join(folder, 'back'))
    t.ok(content.equals(await readFile(join(folder, 'back'))))
  })

  await t.test('a pod is run with its input and output, and removed', async (t) => {
    // It waits for its input: what it prints before kubectl is attached is not shown.
    const script = 'read word; echo hello $word; exit 3'
    const options = ['-i', '--rm', '--quiet', '--restart=Never', `--image=${image}`, '--image-pull-policy=IfNotPresent']
    const args = ['--kubeconfig', controller.kubeconfig, 'run', 'once', ...options, '--', 'sh', '-c', script]
    const running = promisify(execFile)('kubectl', args, { timeout: 90_000 })
    running.child.stdin?.end('world\n')
    const failed = await running.then(
      () => undefined,
      (error: { readonly code: number; readonly stdout: string; readonly stderr: string }) => error,
    )
    t.match(failed, { code: 3, stdout: /hello world/ }, failed?.stderr ?? 'it fails with the status of its command')
    t.equal((await tryKubectl('get', 'pod', 'once')).code, 1)
  })

  await t.test('errors are those of Kubernetes', async (t) => {
    const refusal = async (...args: readonly string[]) => (await tryKubectl(...args)).stderr.trim()
    t.match(
      await refusal('exec', 'shell', '-c', 'none', '--', 'true'),
      /container none is not valid for pod shell|container not found/,
    )
    const path = '/api/v1/namespaces/default/pods/shell/exec?command=true&stdout=true'
    t.equal(await refusal('get', '--raw', path), 'Error from server (BadRequest): Upgrade request required')
  })

  await t.test('a reader that stops costs no memory', async (t) => {
    const args = ['--kubeconfig', controller.kubeconfig, 'exec', 'shell', '--', 'yes']
    const child = spawn('kubectl', args, { stdio: ['ignore', 'pipe', 'ignore'] })
    await once(child.stdout, 'readable')
    const before = await Promise.all([agent.pid, controller.program.pid].map(residentKiB))
    await delay(5_000)
    const after = await Promise.all([agent.pid, controller.program.pid].map(residentKiB))
    // Garbage of earlier requests varies by 10 MB. Without back-pressure these seconds are some hundreds of MB.
    after.forEach((kib, i) => {
      const grown = kib - (before[i] ?? 0)
      t.ok(grown < 32_768, `${i === 0 ? 'agent' : 'controller'}: ${grown} KiB more`)
    })
    child.kill('SIGKILL')
    await eventually('the command is killed with its client', async () => {
      const { stdout } = await tryKubectl('exec', 'shell', '--', 'ps')
      return stdout.includes('sleep') && !/\byes\b/.test(stdout)
    })
  })

  await t.test('a client that leaves while its input is blocked ends the command', async (t) => {
    const leave = async (websockets: string, seconds: string) => {
      const env = { ...process.env, KUBECTL_REMOTE_COMMAND_WEBSOCKETS: websockets }
      const args = ['--kubeconfig', controller.kubeconfig, 'exec', '-i', 'shell', '--', 'sleep', seconds]
      const child = spawn('kubectl', args, { stdio: ['pipe', 'ignore', 'ignore'], env })
      child.stdin.on('error', () => undefined)
      const runs = async () => (await tryKubectl('exec', 'shell', '--', 'ps')).stdout.includes(`sleep ${seconds}`)
      await eventually('the command runs', runs)
      let isBlocked = false
      const fill = () => {
        while (!child.stdin.destroyed && child.stdin.write('y'.repeat(65_536)));
        isBlocked = true
      }
      child.stdin.on('drain', () => {
        isBlocked = false
        fill()
      })
      fill()
      await eventually('its input is blocked', async () => {
        const before = isBlocked
        await delay(1_000)
        return before && isBlocked
      })
      child.kill('SIGINT')
      await eventually('the command is killed', async () => !(await runs()))
      t.pass(websockets === 'true' ? 'over a WebSocket' : 'over SPDY')
    }
    await Promise.all([leave('true', '997'), leave('false', '998')])
  })

  await t.test('attach, run and debug have a terminal', async (t) => {
    const typing = async (input: string, ...args: readonly string[]) => {
      const shell = `kubectl --kubeconfig ${controller.kubeconfig} ${args.join(' ')}`
      const running = promisify(execFile)('script', ['-qec', shell, '/dev/null'], { timeout: 90_000 })
      let printed = ''
      running.child.stdout?.on('data', (piece: string) => {
        printed += piece
      })
      // Typed once there is a terminal on the other side, which echoes it.
      await eventually('a prompt', () => printed.includes('#') || printed.includes('ready'))
      running.child.stdin?.write(input)
      return (await running.catch((error: { stdout: string }) => error)).stdout
    }
    const container = {
      name: 'main',
      image,
      command: ['sh', '-c', 'echo ready; read x; echo got $x'],
      stdin: true,
      tty: true,
    }
    const spec = { containers: [container], restartPolicy: 'Never' }
    await kubectlWith(manifest('terminal', [], spec), 'apply', '-f', '-')
    await kubectl('wait', '--for=condition=Ready', 'pod/terminal', '--timeout=80s')
    const attaching = promisify(execFile)('script', [
      '-qec',
      `kubectl --kubeconfig ${controller.kubeconfig} attach -it terminal`,
      '/dev/null',
    ])
    attaching.child.stdin?.write('by attach\n')
    t.match((await attaching).stdout, /got by attach/)
    const imageArgs = [`--image=${image}`, '--image-pull-policy=IfNotPresent']
    const ran = await typing('exit 3\n', 'run', 'typed', '-it', '--rm', '--restart=Never', ...imageArgs, '--', 'sh')
    t.match(ran, /pod "typed" deleted/)
    t.equal((await tryKubectl('get', 'pod', 'typed')).code, 1)
    const debugged = await typing('ps; exit\n', 'debug', '-it', 'shell', ...imageArgs, '--target=main', '--', 'sh')
    t.match(debugged, /sleep 1000/, 'the processes of the container that is debugged')
    const node = await typing('ls /host; exit\n', 'debug', 'node/pi-1', '-it', ...imageArgs, '--', 'sh')
    t.match(node, /\betc\b.*\busr\b/s, 'the files of the machine')
  })

  await t.test('an agent that stops ends its streams', async (t) => {
    const running = tryKubectl('exec', 'shell', '--', 'sleep', '998')
    await eventually('the command runs', async () =>
      /sleep 998/.test((await tryKubectl('exec', 'shell', '--', 'ps')).stdout),
    )
    await agent.stop()
    const { code, stderr } = await running
    t.equal(code, 1)
    t.match(stderr, /the connection to the node ended/)
  })
})

test('kubectl port-forward', async (t) => {
  const { controller, startReady } = await joinedFleet(t)
  await startReady()
  const { kubectl, kubectlWith, tryKubectl } = controller
  const script =
    'head -c 2000000 /dev/zero > /tmp/large; head -c 60000000 /dev/zero > /tmp/endless; echo here > /tmp/index.html; httpd -p 127.0.0.1:8081 -h /tmp; exec httpd -f -p 8080 -h /tmp'
  await kubectlWith(manifest('web', [{ name: 'main', script }]), 'apply', '-f', '-')
  await kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=80s')
  const page = ['wget', '-qO-', 'http://127.0.0.1:8080/index.html']
  await eventually('it serves', async () => (await tryKubectl('exec', 'web', '--', ...page)).code === 0)

  for (const [how, tunnel] of [
    ['through a WebSocket', 'true'],
    ['through SPDY', 'false'],
  ] as const) {
    await t.test(how, async (t) => {
      const args = ['--kubeconfig', controller.kubeconfig, 'port-forward', 'pod/web', ':8080', ':1', ':8081', '-v=4']
      const env = { ...process.env, KUBECTL_PORT_FORWARD_WEBSOCKETS: tunnel }
      const child = spawn('kubectl', args, { stdio: ['ignore', 'pipe', 'pipe'], env })
      const ended = once(child, 'close')
      let [output, errors] = ['', '']
      child.stdout.on('data', (chunk: Buffer) => {
        output += chunk.toString()
      })
      child.stderr.on('data', (chunk: Buffer) => {
        errors += chunk.toString()
      })
      t.teardown(async () => {
        child.kill('SIGKILL')
        await ended
      })
      const [web, closed, inside] = await eventually('it listens', () => {
        const ports = [...output.matchAll(/127\.0\.0\.1:(\d+) ->/g)].map(([, port]) => port)
        return ports.length === 3 && ports
      })
      const base = `http://127.0.0.1:${web}`
      t.equal(await textOf(`${base}/index.html`), 'here\n')
      const pages = await Promise.all(Array.from({ length: 20 }, () => textOf(`${base}/index.html`)))
      t.same(new Set(pages), new Set(['here\n']), 'twenty connections at once')
      t.equal((await textOf(`${base}/large`)).length, 2_000_000)
      t.equal(await textOf(`http://127.0.0.1:${inside}/index.html`), 'here\n', 'on the loopback address of the pod')
      t.equal((await textOf(`http://127.0.0.1:${inside}/large`)).length, 2_000_000)
      // Until 1.32 kubectl did not reset the stream, and waited for ever then (kubernetes#128681).
      if ((await kubectlMinor(controller)) >= 32) {
        await abandonDownload(`${base}/endless`)
        t.equal(await textOf(`${base}/index.html`), 'here\n', 'after a download that the client abandoned')
      }
      await t.rejects(textOf(`http://127.0.0.1:${closed}/`))
      await eventually('the error is printed', () =>
        /failed to connect to port 1 of the pod: .*ECONNREFUSED/.test(errors),
      )
      t.notMatch(errors, /fallback/i)
    })
  }
})

test('kubectl port-forward to a pod on the network of its machine', async (t) => {
  const { controller, startReady } = await joinedFleet(t)
  await startReady()
  const port = await freePort()
  const script = `echo host > /tmp/index.html; exec httpd -f -p 127.0.0.1:${port} -h /tmp`
  const pod = manifest('onhost', [{ name: 'main', script }], { hostNetwork: true })
  await controller.kubectlWith(pod, 'apply', '-f', '-')
  await controller.kubectl('wait', '--for=condition=Ready', 'pod/onhost', '--timeout=80s')
  const args = ['--kubeconfig', controller.kubeconfig, 'port-forward', 'pod/onhost', `:${port}`]
  const child = spawn('kubectl', args, { stdio: ['ignore', 'pipe', 'ignore'] })
  const ended = once(child, 'close')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  let output = ''
  child.stdout.on('data', (piece: Buffer) => {
    output += piece.toString()
  })
  const local = await eventually('it listens', () => /127\.0\.0\.1:(\d+) ->/.exec(output)?.[1])
  t.equal(await eventually('the server answers', () => textOf(`http://127.0.0.1:${local}/`)), 'host\n')
})

async function kubectlMinor({ kubectl }: Controller): Promise<number> {
  const { clientVersion } = JSON.parse(await kubectl('version', '--client', '-o', 'json'))
  return Number.parseInt(clientVersion.minor, 10)
}

async function textOf(url: string): Promise<string> {
  const answer = await fetch(url, { headers: { connection: 'close' } })
  return answer.text()
}

/** Reads the first bytes, and closes the connection. */
async function abandonDownload(url: string): Promise<void> {
  const stop = new AbortController()
  const { body } = await fetch(url, { headers: { connection: 'close' }, signal: stop.signal })
  await body?.getReader().read()
  stop.abort()
}

async function residentKiB(pid: number): Promise<number> {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1])
}
