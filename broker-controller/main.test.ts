import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Test, test } from 'tap'
import { apiClient } from '../daemon/api-client.ts'
import { testFolder } from '../daemon/testing/test-folder.ts'
import { readKubeconfig } from './commands/connection/kubeconfig.ts'

const program = fileURLToPath(new URL('./main.js', import.meta.url))

test('a controller starts in an empty folder, is the only one there, and stops on SIGTERM', async (t) => {
  const dataDir = testFolder(t)
  const first = started(t, dataDir)
  const { api, mqtt, kubeconfig, caHash } = await first.ready()
  const folderWhenReady = readdirSync(join(dataDir, 'authority')).sort()
  t.match(api, /^https:\/\/127\.0\.0\.1:\d+$/)
  t.match(mqtt, /^mqtts:\/\/127\.0\.0\.1:\d+$/)
  t.match(caHash, /^sha256:[0-9a-f]{64}$/)
  t.equal(kubeconfig, join(dataDir, 'kubeconfig'))
  for (const name of ['kubeconfig', 'server.key', 'store.db', 'secrets.key', 'authority/ca.key']) {
    t.equal(statSync(join(dataDir, name)).mode & 0o777, 0o600, name)
  }
  // Other controllers of the fleet are given a copy from this moment on.
  const copied = ['backup.key', 'ca.crt', 'ca.key', 'front-proxy-ca.crt', 'front-proxy-ca.key', 'service-account.key']
  t.same(folderWhenReady, copied)
  const answer = await get(kubeconfig, '/api/v1/namespaces/kube-public/configmaps/cluster-info')
  t.match(answer, { data: { mqttPort: new URL(mqtt).port, caHash, kubeconfig: /server: "https:/ } })
  t.ok(await namespaceGoes(kubeconfig), 'a namespace that is deleted goes')

  const second = started(t, dataDir)
  t.equal(await second.ended, 1)
  t.match(second.output(), `Another controller (pid ${first.child.pid}) uses ${dataDir}`)

  const apiPort = new URL(api).port
  const third = started(t, join(dataDir, 'other'), '--api-port', apiPort)
  t.equal(await third.ended, 1)
  t.match(third.output(), `Port ${apiPort} (Kubernetes API) is in use: choose another with --api-port`)

  first.child.kill('SIGTERM')
  t.equal(await first.ended, 0)
  t.match(first.output(), 'Controller stopped')
})

test('a controller that was killed is back at once with the same fleet', async (t) => {
  const dataDir = testFolder(t)
  const first = started(t, dataDir)
  const { caHash, kubeconfig } = await first.ready()
  const namespaces = await get(kubeconfig, '/api/v1/namespaces')
  first.child.kill('SIGKILL')
  await first.ended
  const began = performance.now()
  const second = started(t, dataDir, '--kubeconfig', join(dataDir, 'another'))
  t.equal((await second.ready()).caHash, caHash)
  t.ok(performance.now() - began < 30_000, `it took ${Math.round(performance.now() - began)} ms`)
  const names = (list: unknown) =>
    (list as { items: { metadata: { uid: string } }[] }).items.map(({ metadata }) => metadata.uid)
  t.same(names(await get(join(dataDir, 'another'), '/api/v1/namespaces')), names(namespaces))
  second.child.kill('SIGINT')
  t.equal(await second.ended, 0)
})

test('the kubeconfig has the advertised address for other machines, and a local one that needs no network', async (t) => {
  const dataDir = testFolder(t)
  const first = started(t, dataDir)
  const { kubeconfig, api } = await first.ready()
  t.equal((await readKubeconfig(kubeconfig)).url, api, 'without the setting the local address is the current one')
  first.child.kill('SIGTERM')
  await first.ended
  const second = started(t, dataDir, '--advertise-address', 'pi-main.example')
  const local = (await second.ready()).api
  const advertised = local.replace('127.0.0.1', 'pi-main.example')
  t.equal((await readKubeconfig(kubeconfig)).url, advertised)
  t.equal((await readKubeconfig(kubeconfig, 'bramble-local')).url, local)
  t.equal((await readKubeconfig(kubeconfig, 'bramble')).url, advertised)
  t.equal((await readKubeconfig(kubeconfig, 'absent')).url, advertised, 'one that is not there changes nothing')
  const text = readFileSync(kubeconfig, 'utf8').replaceAll(/(current-context: ).*/g, '$1bramble-local')
  writeFileSync(kubeconfig, text)
  t.match(await get(kubeconfig, '/api/v1/namespaces/kube-public/configmaps/cluster-info'), {
    data: { kubeconfig: new RegExp(`server: "${advertised}"\n[^]*current-context: bramble\n`) },
  })
})

test('a lost authority is logged with its consequence', async (t) => {
  const dataDir = testFolder(t)
  const first = started(t, dataDir)
  const { caHash } = await first.ready()
  first.child.kill('SIGTERM')
  await first.ended
  t.notMatch(first.output(), 'another authority')
  rmSync(join(dataDir, 'authority'), { recursive: true })
  const second = started(t, dataDir)
  t.not((await second.ready()).caHash, caHash)
  const line = second
    .output()
    .split('\n')
    .find((one) => one.includes('The fleet trusts another authority'))
  t.match(JSON.parse(line ?? '{}'), { level: 'warn', trusted: caHash, remedy: /every machine join again/ })
})

test('a controller without the key of its Secrets ends with status 78 and names the file and the remedy', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'main-')) // short enough for the path of the admin socket
  t.teardown(() => rmSync(dataDir, { recursive: true }))
  const first = started(t, dataDir)
  const { kubeconfig } = await first.ready()
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, data: { password: 'aHVudGVyMg==' } }
  const client = apiClient(await readKubeconfig(kubeconfig))
  t.equal((await client.post('/api/v1/namespaces/default/secrets', secret)).status, 201)
  first.child.kill('SIGTERM')
  await first.ended
  t.notMatch(first.output(), /aHVudGVyMg==|hunter2/)
  const key = join(dataDir, 'secrets.key')
  const text = readFileSync(key)
  rmSync(key)
  const without = started(t, dataDir)
  t.equal(await without.ended, 78)
  t.match(
    without.output(),
    /Secrets in .*store\.db are encrypted with key [0-9a-f]{16}, and .*secrets\.key does not exist/,
  )
  t.match(without.output(), /bramble-controller restore FILE --replace --passphrase-file FILE/)
  t.throws(() => statSync(key), { code: 'ENOENT' }, 'no other key is made')
  writeFileSync(key, `${Buffer.alloc(32, 7).toString('base64')}\n`)
  const another = started(t, dataDir)
  t.equal(await another.ended, 78)
  t.match(another.output(), /secrets\.key does not contain it/)
  writeFileSync(key, 'no key')
  const broken = started(t, dataDir)
  t.equal(await broken.ended, 78)
  t.match(broken.output(), /There are no keys of Secrets in .*secrets\.key/)
  writeFileSync(key, text)
  const back = started(t, dataDir)
  const access = apiClient(await readKubeconfig((await back.ready()).kubeconfig))
  t.match((await access.get('/api/v1/namespaces/default/secrets/s')).body, { data: { password: 'aHVudGVyMg==' } })
  t.equal(statSync(key).mode & 0o777, 0o600)
  const id = await rotated(dataDir)
  t.match((await access.get('/api/v1/namespaces/default/secrets/s')).body, { data: { password: 'aHVudGVyMg==' } })
  back.child.kill('SIGTERM')
  await back.ended
  t.not(await rotated(dataDir), id, 'a stopped one is rotated, too')
  t.notMatch(readFileSync(join(dataDir, 'store.db'), 'latin1'), 'aHVudGVyMg==')
  const last = started(t, dataDir)
  await last.ready()
  const again = apiClient(await readKubeconfig(kubeconfig))
  t.match((await again.get('/api/v1/namespaces/default/secrets/s')).body, { data: { password: 'aHVudGVyMg==' } })
})

/** The key ID that `secrets show` prints after a rotation. */
async function rotated(dataDir: string): Promise<string> {
  const run = promisify(execFile)
  const rotation = await run(process.execPath, [program, 'secrets', 'rotate-key', '--data-dir', dataDir])
  const shown = await run(process.execPath, [program, 'secrets', 'show', '--data-dir', dataDir])
  const [, id = ''] = /^Key ([0-9a-f]{16}) encrypts all Secrets now/.exec(rotation.stdout) ?? []
  if (shown.stdout !== `${id}  encrypts\n`) throw new Error(`${rotation.stdout}${shown.stdout}`)
  return id
}

test('a configuration that is wrong ends with status 78, all mistakes reported; --check starts nothing', async (t) => {
  const dataDir = testFolder(t)
  const config = join(dataDir, 'config.yaml')
  writeFileSync(
    config,
    'apiVersion: bramble.dev/v1alpha1\nkind: ControllerConfiguration\nunhealthyZoneThreshold: 2\neventTTL: soon\n',
  )
  const wrong = started(t, dataDir, '--config', config)
  t.equal(await wrong.ended, 78)
  t.match(wrong.output(), /unhealthyZoneThreshold: 2 must be.*\n.*eventTTL: "soon" must be a duration/)
  const missing = started(t, dataDir, '--config', join(dataDir, 'none.yaml'))
  t.equal(await missing.ended, 78)
  const checked = started(t, dataDir, '--check')
  t.equal(await checked.ended, 0)
  t.throws(() => readFileSync(join(dataDir, 'store.db')), { code: 'ENOENT' })
  const mistyped = started(t, dataDir, '--prot', '1')
  t.equal(await mistyped.ended, 64)
})

test('a new fleet is routed, and one whose pods stay within nodes does so until its configuration has another one', async (t) => {
  const dataDir = testFolder(t)
  const config = join(dataDir, 'config.yaml')
  const start = (more: string) => {
    writeFileSync(config, `apiVersion: bramble.dev/v1alpha1\nkind: ControllerConfiguration\n${more}`)
    return started(t, dataDir, '--config', config)
  }
  const rangesWith = async (more: string) => {
    const controller = start(more)
    const { kubeconfig } = await controller.ready()
    const info = await get(kubeconfig, '/api/v1/namespaces/kube-public/configmaps/cluster-info')
    controller.child.kill('SIGTERM')
    await controller.ended
    return (info as { readonly data: { readonly [field: string]: string } }).data['clusterCIDR']
  }
  t.equal(await rangesWith(''), '10.244.0.0/16')
  t.equal(await rangesWith('podNetwork: node\n'), undefined)
  t.equal(await rangesWith(''), undefined)
  const refused = start('ingress: {}\n')
  t.equal(await refused.ended, 78)
  t.match(
    refused.output(),
    /conflicts with podNetwork: node .*ingress needs podNetwork: routed, .*: set it, or remove ingress/,
  )
  t.equal(await rangesWith('podNetwork: routed\ningress: {}\n'), '10.244.0.0/16')
})

type Ready = { readonly api: string; readonly mqtt: string; readonly kubeconfig: string; readonly caHash: string }

function started(t: Test, dataDir: string, ...more: readonly string[]) {
  const ports = ['--api-port', '0', '--mqtt-port', '0', '--bind-address', '127.0.0.1', '--log-format', 'json']
  const child: ChildProcess = spawn(process.execPath, [program, 'run', '--data-dir', dataDir, ...ports, ...more])
  let output = ''
  let wake = () => {}
  const collect = (part: Buffer) => {
    output += part.toString()
    wake()
  }
  child.stdout?.on('data', collect)
  child.stderr?.on('data', collect)
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  void ended.then(() => wake())
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
    const [warning] = /^\(node:\d+\) .*Warning: .*/m.exec(output) ?? []
    if (warning !== undefined) throw new Error(`The controller printed: ${warning}`)
  })
  return {
    child,
    ended,
    output: () => output,
    async ready(): Promise<Ready> {
      for (;;) {
        const line = output.split('\n').find((line) => line.endsWith('}') && line.includes('"Controller ready"'))
        if (line !== undefined) return JSON.parse(line) as Ready
        if (child.exitCode !== null) throw new Error(`It ended: ${output}`)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
  }
}

/** Makes a namespace with something in it and deletes it; true once it is gone. */
async function namespaceGoes(kubeconfig: string): Promise<boolean> {
  const api = apiClient(await readKubeconfig(kubeconfig))
  const path = '/api/v1/namespaces/brief'
  await api.post('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'brief' } })
  await api.post(`${path}/configmaps`, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'some' } })
  await api.delete(path)
  const late = AbortSignal.timeout(60_000)
  for (;;) if ((await api.get(path, late)).status === 404) return true
}

async function get(kubeconfig: string, path: string): Promise<unknown> {
  const { status, body } = await apiClient(await readKubeconfig(kubeconfig)).get(path, AbortSignal.timeout(60_000))
  if (status !== 200) throw new Error(`${path}: ${status}`)
  return body
}
