import { test } from 'tap'
import { dockerCheck, dockerHealth } from './docker.ts'
import { brokenFile } from './docker-start.ts'

/** As dockerd 20.10.24 printed them, with each of these files broken. */
const network =
  'failed to start daemon: Error initializing network controller: error obtaining controller instance: failed to get bridge network configurations from store: error while populating kmap: invalid database'
const volumes = 'failed to start daemon: error while opening volume store metadata database: invalid database'
const names = "failed to start daemon: Couldn't create reference store repository: unexpected EOF"
const builds = 'failed to open database file /var/lib/docker/buildkit/cache.db: invalid database'
const settings = 'unable to configure the Docker daemon with file /etc/docker/daemon.json: unexpected EOF'
const systemd = 'docker.service: Failed with result exit-code.'

test('the file that keeps Docker from starting is found in the last lines of its log', async (t) => {
  const pathOf = (line: string) => brokenFile(['time="…" level=info msg="Starting up"', line, systemd, ''])?.path
  t.equal(pathOf(network), '/var/lib/docker/network/files/local-kv.db')
  t.equal(pathOf(volumes), '/var/lib/docker/volumes/metadata.db')
  t.equal(pathOf(names), '/var/lib/docker/image/overlay2/repositories.json')
  t.equal(pathOf(builds), '/var/lib/docker/buildkit/cache.db')
  t.equal(pathOf(settings), '/etc/docker/daemon.json')
  t.equal(pathOf('failed to start daemon: pid file found'), undefined)
  t.match(brokenFile([network], '/data/docker'), {
    path: '/data/docker/network/files/local-kv.db',
    problem: /^network controller: .*invalid database$/,
    remedy: /^Move it away \('mv \/data\/docker\/network\/files\/local-kv\.db .*systemctl restart docker/,
  })
  t.match(brokenFile([settings]), { remedy: /^Correct it/ })
  t.ok((brokenFile([`${settings}${'x'.repeat(5_000)}`])?.problem.length ?? 0) <= 300)
})

test('only the last failure counts', async (t) => {
  t.equal(brokenFile([network, systemd, settings])?.path, '/etc/docker/daemon.json')
  t.equal(brokenFile([network, systemd, 'failed to start daemon: no space left on device']), undefined)
  t.equal(brokenFile([network, 'level=info msg="Daemon has completed initialization"', 'stopped']), undefined)
  const locked = 'failed to start daemon: error while opening volume store metadata database: timeout'
  t.equal(brokenFile([locked]), undefined, 'another dockerd has it open')
  t.equal(brokenFile([]), undefined)
})

test('the condition of a Docker that is down names the file and the remedy', async (t) => {
  const silence = { kind: 'refuses', sinceMs: 60_000 } as const
  const lastLines = async () => [network]
  const found = await dockerCheck.look(
    { docker: () => ({ version: undefined, silence, lastLines }) },
    { settings: { highTemperatureCelsius: undefined }, wasWrong: false },
  )
  t.match(found, {
    status: 'True',
    reason: 'DockerDown',
    found: /^Docker does not start because of \/var\/lib\/docker\/network\/files\/local-kv\.db: network controller: /,
    remedy: /^Move it away/,
  })
  t.match(dockerHealth({ version: undefined, silence }), { reason: 'DockerDown', found: 'Docker is not running' })
})

test('the log is read only when Docker is down', async (t) => {
  let read = 0
  const lastLines = async () => {
    read++
    return []
  }
  const look = (silence: { readonly kind: 'refuses' | 'hangs'; readonly sinceMs: number } | undefined) =>
    dockerCheck.look(
      { docker: () => ({ version: 'docker://20.10.24', silence, lastLines }) },
      { settings: { highTemperatureCelsius: undefined }, wasWrong: false },
    )
  await look(undefined)
  await look({ kind: 'refuses', sinceMs: 4_999 })
  await look({ kind: 'hangs', sinceMs: 60_000 })
  t.equal(read, 0)
  t.match(await look({ kind: 'refuses', sinceMs: 5_000 }), { reason: 'DockerDown', found: 'Docker is not running' })
  t.equal(read, 1)
})
