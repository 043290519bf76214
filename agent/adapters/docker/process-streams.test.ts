import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Dockerode from 'dockerode'
import { type Test, test } from 'tap'
import { startCommand } from './process-streams.ts'

test('a command whose client leaves while Docker starts it is killed', async (t) => {
  const child = spawn('sleep', ['100'], { stdio: 'ignore' })
  t.teardown(() => child.kill('SIGKILL'))
  const ended = once(child, 'exit')
  const gone = new AbortController()
  const docker = await dockerWith(t, child, () => gone.abort('the client is gone'))
  // By its cgroup a process belongs to a container: any part of the path does here.
  const id = /(\w+)/.exec(await readFile(`/proc/${child.pid}/cgroup`, 'utf8'))?.[1] ?? ''
  const options = { command: ['sleep', '100'], stdin: false, stdout: true, stderr: true, tty: false }
  await startCommand(docker, id, options, gone.signal)
  t.same(await ended, [null, 'SIGKILL'])
})

/** Docker's API with one command, which is this process. */
async function dockerWith(t: Test, { pid }: ChildProcess, onStart: () => void): Promise<Dockerode> {
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
  return new Dockerode({ socketPath, host: undefined, protocol: 'http' })
}
