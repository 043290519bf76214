/**
 * The recipes of docs/recipes.md about the data of pods: their manifests and commands as they stand there, on real agents and Docker. The tables
 * below have all that is replaced: images that cannot be had here, and places of other machines.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Test, test } from 'tap'
import { parseAllDocuments } from 'yaml'
import { isObject } from '../api/text/json.ts'
import { boundNas } from './support/bound-nas.ts'
import { whyNoDockerd } from './support/dockerd.ts'
import { temporaryFolder } from './support/fleet.ts'
import { type JoinedFleet, joinedFleet } from './support/joined-fleet.ts'
import { skipWithout } from './support/missing-parts.ts'
import { patience } from './support/patience.ts'
import { image } from './support/pods.ts'
import { eventually } from './support/wait.ts'

const repository = fileURLToPath(new URL('../..', import.meta.url))
const staying = 'trap "exit 0" TERM; while :; do sleep 0.1; done'
/** What runs in place of an image. */
const images: { readonly [image: string]: string } = {
  'ghcr.io/home-assistant/home-assistant:stable': `hostname >> /config/starts; ${staying}`,
  'postgres:17': `
    printf '#!/bin/sh\\necho "dump of $2" > "$6"\\n' > /bin/pg_dump
    printf '#!/bin/sh\\n[ -n "$POSTGRES_PASSWORD" ]\\n' > /bin/pg_isready
    chmod +x /bin/pg_dump /bin/pg_isready
    mkdir -p "$PGDATA" && echo rows > "$PGDATA/rows"; ${staying}`,
  'jellyfin/jellyfin:10.10.7': `touch /media/x && exit 1; ls /media > /config/seen; ${staying}`,
  'restic/restic:0.17.3': 'echo "$0 $* to $RESTIC_REPOSITORY: $(ls /data)"',
}

type Recipe = { readonly yaml: readonly string[]; readonly sh: readonly string[] }

async function recipeOf(title: string): Promise<Recipe> {
  const page = await readFile(join(repository, 'docs/recipes.md'), 'utf8')
  const [, section] = new RegExp(`^## ${title}\n(.*?)^## `, 'ms').exec(page) ?? []
  if (section === undefined) throw new Error(`docs/recipes.md has no recipe ${title}`)
  const blocks = (language: string) =>
    [...section.matchAll(/^```(\w+)\n(.*?)^```/gms)].flatMap(([, of, text = '']) => (of === language ? [text] : []))
  return { yaml: blocks('yaml'), sh: blocks('sh') }
}

/** With the images of the table. */
function playable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(playable)
  if (!isObject(value)) return value
  const changed = Object.fromEntries(Object.entries(value).map(([key, one]) => [key, playable(one)]))
  const { image: wanted } = changed
  if (typeof wanted !== 'string') return changed
  const script = images[wanted]
  if (script === undefined) throw new Error(`Nothing is there in place of the image ${wanted}`)
  return { ...changed, image, imagePullPolicy: 'Never', command: ['sh', '-c', script] }
}

/** A fleet, and a shell in which the commands of the page work. `places`: what stands for places of other machines. */
async function aHouse(fleet: JoinedFleet, places: readonly (readonly [string, string])[]) {
  const { controller, folder } = fleet
  const [bin, home] = [join(folder, 'commands'), join(folder, 'home')]
  for (const each of [bin, home]) await mkdir(each)
  const wrappers = {
    'bramble-controller': `exec ${join(repository, 'scripts/bramble-controller')} "$@" --kubeconfig ${controller.kubeconfig}`,
    kubectl: `[ "$1 $2" = "--context k3s" ] && exec cat k3s.json
PATH=\${PATH#*:} exec kubectl --kubeconfig ${controller.kubeconfig} --cache-dir ${join(home, 'cache')} "$@"`,
  }
  for (const [name, script] of Object.entries(wrappers)) {
    await writeFile(join(bin, name), `#!/bin/sh\n${script}\n`)
    await chmod(join(bin, name), 0o755)
  }
  const placed = (text: string) => places.reduce((changed, [from, to]) => changed.replaceAll(from, to), text)
  const env = { ...process.env, HOME: home, PATH: `${bin}:${process.env['PATH']}` }
  const run = async (script: string) => {
    const options = { cwd: home, env, timeout: 240_000 * patience }
    const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', placed(script)], options)
    return stdout
  }
  return {
    ...{ fleet, home, run, kubectl: controller.kubectl },
    /** Saves the manifest under the name that the commands have for it, or applies it where they have none. */
    async save(yaml: string, script = '') {
      const [, name] = /apply -f (\S+)/.exec(script) ?? []
      const items = parseAllDocuments(placed(yaml)).map((one) => playable(one.toJS()))
      const all = { apiVersion: 'v1', kind: 'List', items }
      await writeFile(join(home, name ?? 'manifest.yaml'), JSON.stringify(all))
      if (name === undefined) await run('kubectl apply -f manifest.yaml')
    },
    async folderOf(claim: string, namespace = 'default') {
      const name = await controller.kubectl('-n', namespace, 'get', 'pvc', claim, '-o', 'jsonpath={.spec.volumeName}')
      return controller.kubectl('get', 'pv', name, '-o', 'jsonpath={.spec.local.path}')
    },
    async nodes(): Promise<ReadonlyMap<string, string>> {
      const { items } = JSON.parse(await run('bramble-controller volumes --output json'))
      return new Map(items.map(({ claim, node }: { claim: string; node: string }) => [claim, node]))
    },
    ready: (what: string) => controller.kubectl('rollout', 'status', what, '--timeout=85s'),
  }
}

type House = Awaited<ReturnType<typeof aHouse>>

async function homeAssistant(t: Test, house: House): Promise<void> {
  const { yaml, sh } = await recipeOf('Home Assistant with its data')
  for (const manifest of yaml) await house.save(manifest, sh[0])
  t.match(await house.run(sh[0] ?? ''), /default\/home-assistant/)
  const starts = async () =>
    (await readFile(join(await house.folderOf('home-assistant'), 'starts'), 'utf8')).split('\n')
  await eventually('it has begun', async () => (await starts()).length === 2)
  await house.kubectl('delete', 'pod', '-l', 'app=home-assistant')
  await house.ready('deployment/home-assistant')
  await eventually('the next pod has its data', async () => (await starts()).length === 3)
  t.pass()
}

async function postgres(t: Test, house: House): Promise<void> {
  const { yaml, sh } = await recipeOf('Postgres')
  const [set = '', restore = '', ...others] = sh
  t.same(others, [])
  for (const manifest of yaml) await house.save(manifest, set)
  await house.run(set)
  const data = await house.folderOf('data-postgres-0')
  t.equal(await readFile(join(data, 'backup.dump'), 'utf8'), 'dump of postgres\n')
  await house.run(restore)
  const before = await house.folderOf('data-before')
  t.ok(before.startsWith(house.fleet.dataDir('pi-2')), before)
  t.equal(await readFile(join(before, 'backup.dump'), 'utf8'), 'dump of postgres\n')
  t.equal(await readFile(join(before, 'pgdata/rows'), 'utf8'), 'rows\n')
}

async function mediaServer(t: Test, house: House): Promise<void> {
  const { yaml, sh } = await recipeOf('A media server with a NAS')
  t.same(sh, [])
  for (const manifest of yaml) await house.save(manifest)
  await house.ready('deployment/jellyfin')
  const seen = async () => readFile(join(await house.folderOf('jellyfin'), 'seen'), 'utf8')
  t.equal(await eventually('it has the films', async () => (await seen().catch(() => '')) || undefined), 'film\n')
}

async function restic(t: Test, house: House): Promise<void> {
  const { yaml, sh } = await recipeOf('Backups with restic')
  for (const manifest of yaml) await house.save(manifest, sh[0])
  await house.run(sh[0] ?? '')
  const log = await house.kubectl('logs', 'job/restic-now')
  t.equal(log, 'backup --host home-assistant /data to s3:https://s3.example.org/fleet: starts\n')
}

async function volumesOfK3s(t: Test, house: House): Promise<void> {
  const { sh } = await recipeOf('Volumes of k3s')
  const path = join(house.fleet.folder, 'pvc-3d3f6f0e_shop_data')
  await mkdir(path)
  await writeFile(join(path, 'file'), 'from k3s')
  const hostname = { key: 'kubernetes.io/hostname', operator: 'In', values: ['pi-1'] }
  const spec = {
    ...{ storageClassName: 'local-path', capacity: { storage: '5Gi' }, hostPath: { path } },
    claimRef: { namespace: 'shop', name: 'data' },
    nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [hostname] }] } },
  }
  const [bound, released] = [{ phase: 'Bound' }, { phase: 'Released' }]
  const items = [
    { spec, status: bound },
    { spec: { ...spec, claimRef: { namespace: 'shop', name: 'gone' } }, status: released },
    { spec: { ...spec, storageClassName: 'nfs', hostPath: undefined }, status: bound },
  ]
  await writeFile(join(house.home, 'k3s.json'), JSON.stringify({ items }))
  await house.run(sh.join('\n'))
  t.equal(await house.folderOf('data', 'shop'), path)
  t.equal(await house.kubectl('-n', 'shop', 'get', 'pvc', '-o', 'jsonpath={.items[*].metadata.name}'), 'data')
  const container = { name: 'main', image, imagePullPolicy: 'Never', command: ['cat', '/data/file'] }
  const pod = {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'shop', name: 'reader' } },
    spec: {
      ...{ restartPolicy: 'Never', volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] },
      containers: [{ ...container, volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
    },
  }
  await house.fleet.controller.kubectlWith(JSON.stringify(pod), 'create', '-f', '-')
  await house.kubectl('-n', 'shop', 'wait', '--for=jsonpath={.status.phase}=Succeeded', 'pod/reader', '--timeout=60s')
  t.equal(await house.kubectl('-n', 'shop', 'logs', 'reader'), 'from k3s')
}

async function dyingCard(t: Test, house: House): Promise<void> {
  const { sh } = await recipeOf('Off a dying card')
  const before = [...(await house.nodes())].filter(([, node]) => node === 'pi-1').map(([claim]) => claim)
  const adopted = 'shop/data'
  t.ok(before.includes(adopted) && before.length > 1, before.join(', '))
  const printed = await house.run(sh.join('\n'))
  const after = await house.nodes()
  for (const claim of before) t.equal(after.get(claim), claim === adopted ? 'pi-1' : 'pi-2', claim)
  t.match(printed, /Moved: the data is on pi-2\./)
  for (const what of ['deployment/home-assistant', 'deployment/jellyfin', 'statefulset/postgres'])
    await house.ready(what)
  await house.kubectl('uncordon', 'pi-1')
}

async function usbDisk(t: Test, house: House, agent: { stop(): Promise<unknown> }): Promise<void> {
  const { yaml, sh } = await recipeOf('Volumes on a USB disk')
  const [configuration = '', storageClass = '', ...others] = yaml
  t.same(others, [])
  const { pools } = parseAllDocuments(configuration)[0]?.toJS() ?? {}
  const disk = join(house.fleet.folder, 'usb-disk')
  await mkdir(disk)
  await agent.stop()
  // In place of the UUID: Docker's test machines have no disk to attach.
  await house.fleet.startAgent('pi-1', {
    pools: pools.map(({ disk: uuid, ...pool }: { readonly disk: string }) => {
      t.match(uuid, /^[0-9a-f]{8}-[0-9a-f-]{27}$/)
      return { ...pool, path: disk }
    }),
  })
  await house.save(storageClass, sh[0])
  const table = () => house.run(sh[0] ?? '')
  await eventually('the pool is there', async () => new RegExp(`pi-1 .*${disk}`).test(await table()))
  const { yaml: other } = await recipeOf('Home Assistant with its data')
  const named = other.map((text) =>
    text
      .replaceAll('name: home-assistant', 'name: on-usb')
      .replaceAll('claimName: home-assistant', 'claimName: on-usb')
      .replaceAll('app: home-assistant', 'app: on-usb'),
  )
  for (const text of named)
    await house.save(
      text.replace('accessModes: [ReadWriteOnce]', 'accessModes: [ReadWriteOnce]\n  storageClassName: usb'),
    )
  await house.ready('deployment/on-usb')
  t.ok((await readdir(disk)).some((name) => name.startsWith('default_on-usb_')))
}

const skip = whyNoDockerd() || skipWithout('jq', existsSync('/usr/bin/jq'))

test('the recipes about the data of pods work as they are written', { skip, timeout: 900_000 }, async (t) => {
  const nas = await boundNas(t, await temporaryFolder(t))
  await mkdir(join(nas.folder, 'media'))
  await writeFile(join(nas.folder, 'media/film'), '')
  const fleet = await joinedFleet(t, { names: ['pi-1', 'pi-2'] })
  const backups = join(fleet.folder, 'backups')
  await mkdir(backups)
  const places = [
    ['10.0.0.5', nas.address],
    ['/export/media', join(nas.folder, 'media')],
    ['[nfsvers=4.1]', JSON.stringify(nas.mountOptions)],
    ['/mnt/backup', backups],
  ] as const
  const [agent] = await fleet.startReady()
  const house = await aHouse(fleet, places)
  await t.test('Home Assistant with its data', (t) => homeAssistant(t, house))
  await t.test('Postgres, with a dump in each backup', (t) => postgres(t, house))
  await t.test('a media server with a NAS', (t) => mediaServer(t, house))
  await t.test('backups with restic', (t) => restic(t, house))
  await t.test('volumes of k3s', (t) => volumesOfK3s(t, house))
  await t.test('off a dying card', (t) => dyingCard(t, house))
  await t.test('volumes on a USB disk', (t) => usbDisk(t, house, agent))
})
