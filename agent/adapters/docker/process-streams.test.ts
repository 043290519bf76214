import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { type Test, test } from 'tap'
import { dockerEngine, type Engine } from './engine.ts'
import { attachContainer, startCommand } from './process-streams.ts'

test('a command whose client leaves while Docker starts it is killed', async (t) => {
  const child = spawn('sleep', ['100'], { stdio: 'ignore' })
  t.teardown(() => child.kill('SIGKILL'))
  const ended = once(child, 'exit')
  const gone = new AbortController()
  const docker = await dockerWith(t, child, () => gone.abort('the client is gone'))
  // By its cgroup a process belongs to a container: any part of the path does here.
  const id = /(\w+)/.exec(await readFile(`/proc/${child.pid}/cgroup`, 'utf8'))?.[1] ?? ''
  const options = { command: ['sleep', '100'], stdin: false, stdout: true, stderr: true, tty: false }
  await t.rejects(startCommand(docker, id, options, gone.signal))
  t.same(await ended, [null, 'SIGKILL'])
})

/** Docker's API with one command, which is this process. */
async function dockerWith(t: Test, { pid }: ChildProcess, onStart: () => void): Promise<Engine> {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-exec-'))
  const socketPath = join(folder, 'docker.sock')
  const server = createServer((request, response) => {
    const isNew = request.url?.endsWith('/exec') === true
    response.writeHead(isNew ? 201 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(isNew ? { Id: 'one' } : { Running: true, Pid: pid }))
  })
  server.on('upgrade', (_, socket) => {
    onStart()
    socket.on('error', () => undefined).on('end', () => socket.end())
    socket.resume()
    socket.write('HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n')
  })
  server.listen(socketPath)
  await once(server, 'listening')
  t.teardown(async () => {
    server.closeAllConnections()
    server.close()
    await rm(folder, { recursive: true })
  })
  return dockerEngine(socketPath)
}

const terminal = { stdin: true, stdout: true, stderr: true, tty: false }
const never = new AbortController().signal

test('a command has its streams, its output by stream, and its exit code once Docker has it', async (t) => {
  const engine = await engineOf(t)
  const command = await startCommand(engine.docker, 'c1', { ...terminal, command: ['sh', '-c', 'x'] }, never)
  t.match(engine.requests[0], {
    url: '/containers/c1/exec',
    body: { Cmd: ['sh', '-c', 'x'], AttachStdin: true, AttachStdout: true, AttachStderr: true, Tty: false },
  })
  await command.write(Buffer.from('input'))
  command.endInput()
  await engine.received(/input$/)
  await t.rejects(command.write(Buffer.from('more')), { message: 'The process no longer accepts input' })
  engine.send(frame(1, 'out'), frame(2, 'err'))
  t.same(await outputOf(command.output), ['stdout out', 'stderr err'])
  engine.inspections.push({ Running: true, ExitCode: null }, { Running: false, ExitCode: 3 })
  t.equal(await command.exitCode(), 3)
  engine.inspections.push({ Running: false, ExitCode: null })
  t.equal(await command.exitCode(), undefined)
})

test('a terminal has one output, as it is, and a size', async (t) => {
  const engine = await engineOf(t)
  const command = await startCommand(engine.docker, 'c1', { ...terminal, tty: true, command: ['top'] }, never)
  t.match(engine.requests[0]?.body, { AttachStderr: false, Tty: true })
  engine.send(frame(1, 'raw'))
  t.same(await outputOf(command.output), [`stdout ${frame(1, 'raw')}`])
  await command.resize(80, 25)
  t.match(engine.requests.at(-1)?.url, /^\/exec\/one\/resize\?(?=.*w=80)(?=.*h=25)/)
  engine.isGone = true
  await command.resize(80, 25)
  t.equal(engine.requests.length, 3, 'a failure is not passed on')
})

test('streams that were not asked for are not attached', async (t) => {
  const engine = await engineOf(t)
  const options = { stdin: false, stdout: true, stderr: false, tty: false, command: ['ls'] }
  await startCommand(engine.docker, 'c1', options, never)
  t.match(engine.requests[0]?.body, { AttachStdin: false, AttachStdout: true, AttachStderr: false })
})

test('the first process of a container is attached with the terminal of the container', async (t) => {
  for (const tty of [false, true]) {
    const engine = await engineOf(t, tty)
    const attached = await attachContainer(engine.docker, 'c1', { ...terminal, tty: !tty }, never)
    const { pathname, searchParams } = new URL(engine.upgrades[0] ?? '', 'http://docker')
    t.equal(pathname, '/containers/c1/attach')
    const flags = ['stream', 'stdin', 'stdout', 'stderr'].map((name) => searchParams.get(name))
    t.same(flags, ['true', 'true', 'true', String(!tty)])
    engine.send(frame(1, 'out'))
    t.same(await outputOf(attached.output), [tty ? `stdout ${frame(1, 'out')}` : 'stdout out'])
    await attached.resize(100, 30)
    t.match(engine.requests.at(-1)?.url, /^\/containers\/c1\/resize\?(?=.*w=100)(?=.*h=30)/)
    engine.isGone = true
    await attached.resize(100, 30)
    t.equal(await attached.exitCode(), undefined, 'it continues without the session')
  }
})

test('the end of a session closes its stream, and a session that has ended is not begun', async (t) => {
  const engine = await engineOf(t)
  const session = new AbortController()
  const attached = await attachContainer(engine.docker, 'c1', terminal, session.signal)
  const output = outputOf(attached.output)
  session.abort()
  await t.rejects(output, { name: 'RuntimeError', message: /Cannot attach to container c1/ })
  await t.rejects(attached.write(Buffer.from('more')), { message: 'The process no longer accepts input' })
  await t.rejects(attachContainer(engine.docker, 'c1', terminal, session.signal), { name: 'RuntimeError' })
})

test('output that is not in the frames of Docker is an error', async (t) => {
  const engine = await engineOf(t)
  const attached = await attachContainer(engine.docker, 'c1', terminal, never)
  engine.send(Buffer.alloc(64, 0xff))
  await t.rejects(outputOf(attached.output), { name: 'RuntimeError' })
})

test('without the container there is no session', async (t) => {
  const engine = await engineOf(t)
  engine.isGone = true
  await t.rejects(attachContainer(engine.docker, 'c1', terminal, never), { name: 'RuntimeError' })
  await t.rejects(startCommand(engine.docker, 'c1', { ...terminal, command: ['ls'] }, never), {
    name: 'RuntimeError',
    message: /Cannot run ls in container c1/,
  })
})

function frame(stream: number, text: string): Buffer {
  const head = Buffer.from([stream, 0, 0, 0, 0, 0, 0, text.length])
  return Buffer.concat([head, Buffer.from(text)])
}

async function outputOf(output: AsyncIterable<{ readonly stream: string; readonly bytes: Uint8Array }>) {
  const pieces: string[] = []
  for await (const { stream, bytes } of output) pieces.push(`${stream} ${Buffer.from(bytes)}`)
  return pieces
}

/** Docker's API for the streams of one container, which this test reads and writes. */
async function engineOf(t: Test, tty = false) {
  const folder = await mkdtemp(join(tmpdir(), 'bramble-streams-'))
  const socketPath = join(folder, 'docker.sock')
  const world = {
    isGone: false,
    requests: [] as { readonly url: string; readonly body: unknown }[],
    upgrades: [] as string[],
    inspections: [] as object[],
  }
  let input = ''
  let look: () => void = () => undefined
  let stream: Duplex | undefined
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    world.requests.push({ url: request.url ?? '', body: body === '' ? undefined : JSON.parse(body) })
    const isInspection = request.method === 'GET' && request.url?.startsWith('/exec/')
    const answer = isInspection ? world.inspections.shift() : { Id: 'one', Config: { Tty: tty } }
    const status = world.isGone ? 404 : request.url?.endsWith('/exec') ? 201 : 200
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  })
  server.on('upgrade', (request, socket, head) => {
    world.upgrades.push(request.url ?? '')
    stream = socket
    socket.on('error', () => undefined)
    const take = (chunk: Buffer) => {
      input += chunk
      look()
    }
    take(head)
    socket.on('data', take)
    socket.write('HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n')
  })
  server.listen(socketPath)
  await once(server, 'listening')
  t.teardown(async () => {
    stream?.destroy()
    server.closeAllConnections()
    server.close()
    await rm(folder, { recursive: true })
  })
  return Object.assign(world, {
    docker: dockerEngine(socketPath),
    /** Writes the output, and ends it. */
    send: (...pieces: readonly Buffer[]) => void stream?.end(Buffer.concat(pieces)),
    received: (text: RegExp) =>
      new Promise<void>((resolve) => {
        look = () => {
          if (text.test(input)) resolve()
        }
        look()
      }),
  })
}
