/** `bramble-controller volumes`: where the data of claims is, what is in the trash, and how it comes back. */
import { randomBytes } from 'node:crypto'
import { backupTarget } from '../../../api/backups/backup-target.ts'
import { type FleetBackups, FleetBackupsSchema } from '../../../api/backups/fleet-backups.ts'
import { decode } from '../../../api/decode.ts'
import { dnsLabelProblem, dnsSubdomainProblem } from '../../../api/names.ts'
import { type Node, NodeSchema } from '../../../api/node.ts'
import { quantityToNumber, tryParseQuantity } from '../../../api/quantity.ts'
import type { Described, TSchema } from '../../../api/schema.ts'
import { type FleetVolumes, FleetVolumesSchema } from '../../../api/storage/fleet-volumes.ts'
import { PersistentVolumeSchema } from '../../../api/storage/persistent-volume.ts'
import { PersistentVolumeClaimSchema } from '../../../api/storage/persistent-volume-claim.ts'
import { type StorageClass, StorageClassSchema } from '../../../api/storage/storage-class.ts'
import { type ApiClient, apiClient } from '../../../daemon/api-client.ts'
import { systemClock } from '../../../daemon/clock.ts'
import { invalidValue } from '../../../daemon/process/command-line.ts'
import { volumesRow } from '../command-table.ts'
import { expectSuccess } from '../connection/expect-success.ts'
import { kubeconfigPlace, readKubeconfig } from '../connection/kubeconfig.ts'
import { type CommandOutput, runCommand } from '../run-command.ts'
import {
  type BackupWish,
  backUpClaim,
  backupSubject,
  backupsTable,
  chosenBackup,
  watchRestore,
  wishProblem,
} from './backup-command.ts'
import { cancelMove, type MoveWatch, moveVolume } from './move-command.ts'
import {
  adoption,
  chosenEntry,
  claimOfFolder,
  type ForClaim,
  type RestoredVolume,
  restoration,
  undeletion,
} from './restored-volume.ts'
import { claimName, poolsTable, trashTable, volumesTable, volumeText } from './volume-tables.ts'

/** `argv`: what follows `volumes`. The exit code. Never rejects for what was typed or what the API answers. */
export async function volumesCommand(argv: readonly string[], output: CommandOutput): Promise<number> {
  return runCommand(volumesRow, argv, output, ({ form, args: [first = '', second = ''], values }) => {
    const { path, context } = kubeconfigPlace(values.kubeconfig, values['data-dir'])
    const api = async (): Promise<Api<'get' | 'post' | 'patch'>> => ({
      client: apiClient(await readKubeconfig(path, context)),
      signal: output.signal,
    })
    const { claim: given, size, output: format } = values
    const wrong = claimProblem('--claim', given) ?? sizeProblem(size)
    if (wrong !== undefined) return wrong
    const wanted = { size, isVolumeOnly: values['volume-only'] }
    switch (form) {
      case 'list':
      case 'pools':
      case 'trash':
        return async () => listing(form, format, await fleetVolumes(await api()))
      case 'show NAME':
        return async () => volumeText(first, await fleetVolumes(await api()))
      case 'move CLAIM':
        return moving(first, values, async () => watchFor(await api(), output))
      case 'backup CLAIM':
        return backingUp(first, values, async () => watchFor(await api(), output))
      case 'backups':
        return async () => {
          const found = await fleetBackups(values.from, await api())
          return format === 'json' ? `${JSON.stringify({ items: found.backups }, undefined, 2)}\n` : backupsTable(found)
        }
      case 'restore BACKUP': {
        const problem = claimProblem('--as', values.as)
        if (problem !== undefined) return problem
        return async () =>
          restoreClaim(first, { ...wanted, claim: values.as, to: values.to, from: values.from }, await api(), output)
      }
      case 'undelete CLAIM|UID':
        return async () => undelete(first, { ...wanted, claim: given }, await api())
      case 'adopt NODE PATH': {
        const claim = given ?? claimOfFolder(second)
        if (claim === undefined) return 'Give the claim that gets the data with --claim NAMESPACE/NAME'
        return async () => adopt({ node: first, path: second }, { ...wanted, claim }, await api())
      }
    }
  })
}

/** What is wrong with the options, or what is done. */
type Work = string | (() => Promise<string>)
type Watching = () => Promise<MoveWatch>

type MoveOptions = {
  readonly to: string | undefined
  readonly rate: string | undefined
  readonly cancel: boolean
}

function moving(claim: string, { to, rate, cancel }: MoveOptions, watch: Watching): Work {
  const problem = sizeProblem(rate, '--rate')
  if (problem !== undefined) return problem
  if (cancel) return async () => cancelMove(claim, await watch())
  if (to === undefined) return 'Give the node that gets the data with --to NODE'
  return async () => moveVolume(claim, { to, bytesPerSecond: rateOf(rate) }, await watch())
}

type BackupOptions = Pick<BackupWish, 'to' | 'schedule' | 'keep'> & {
  readonly stop: boolean
  readonly rate: string | undefined
}

function backingUp(claim: string, { to, stop, schedule, keep, rate }: BackupOptions, watch: Watching): Work {
  const problem = sizeProblem(rate, '--rate')
  if (problem !== undefined) return problem
  const wish: BackupWish = { to, stops: stop, schedule, keep, bytesPerSecond: rateOf(rate) }
  return wishProblem(wish) ?? (async () => backUpClaim(claim, wish, await watch()))
}

/** In bytes per second. */
function rateOf(rate: string | undefined): number | undefined {
  return rate === undefined ? undefined : Math.ceil(quantityToNumber(rate))
}

type Api<Verbs extends keyof ApiClient = 'get' | 'post'> = {
  readonly client: Pick<ApiClient, Verbs>
  readonly signal: AbortSignal
}

function watchFor(api: Api<'get' | 'post' | 'patch'>, { stdout, signal }: CommandOutput): MoveWatch {
  return {
    fleet: () => fleetVolumes(api),
    async annotate(volume, annotations) {
      const path = `/api/v1/persistentvolumes/${encodeURIComponent(volume)}`
      const answer = await api.client.patch(path, { metadata: { annotations } }, undefined, signal)
      expectSuccess(`Cannot write the volume ${volume}`, answer)
    },
    print: stdout,
    clock: systemClock,
    signal,
  }
}

type Wanted = {
  /** As it was typed. */
  readonly claim: string | undefined
  readonly size: string | undefined
  readonly isVolumeOnly: boolean
}

const tables = { list: volumesTable, pools: poolsTable, trash: trashTable }

function listing(form: keyof typeof tables, format: 'table' | 'json', fleet: FleetVolumes): string {
  if (format === 'table') return tables[form](fleet)
  const rows = { list: fleet.volumes, pools: fleet.pools, trash: fleet.trash }
  return `${JSON.stringify({ items: rows[form] }, undefined, 2)}\n`
}

/** Puts what is in the trash in the hands of a claim. Throws when that cannot be done, or the API rejects a request. */
export async function undelete(subject: string, wanted: Wanted, api: Api): Promise<string> {
  const entry = chosenEntry(subject, await fleetVolumes(api))
  if (typeof entry === 'string') throw new Error(entry)
  const claim = wanted.claim ?? entry.claim
  if (claim === undefined)
    throw new Error(`${entry.uid} had no claim: give the one that gets the data with --claim NAMESPACE/NAME`)
  const found = await claimWanted(claim, wanted, api)
  await create(undeletion(entry, found), wanted, api)
  return doneText(found, wanted, `The data is taken from the trash of ${entry.node} when its first pod starts.`)
}

/** Makes a folder of a node the volume of a claim. Throws when that cannot be done, or the API rejects a request. */
export async function adopt(
  place: { readonly node: string; readonly path: string },
  wanted: Wanted & { readonly claim: string },
  api: Api,
): Promise<string> {
  const [fleet, node] = [await fleetVolumes(api), await nodeOf(place.node, api)]
  const found = await claimWanted(wanted.claim, wanted, api)
  const made = adoption(node, place.path, found, fleet)
  await create(made, wanted, api)
  const isKept = 'volume' in made && made.volume.spec?.persistentVolumeReclaimPolicy === 'Retain'
  const stays = isKept ? ' The folder stays when the claim is deleted.' : ''
  return doneText(found, wanted, `Its data is ${place.path} on ${place.node}.${stays}`)
}

type RestoreWish = Wanted & { readonly to: string | undefined; readonly from: string | undefined }

/** Makes a claim whose data comes from a backup, and watches. Throws when that cannot be done, or the API rejects a request. */
export async function restoreClaim(
  subject: string,
  { to, from, ...wanted }: RestoreWish,
  api: Api<'get' | 'post' | 'patch'>,
  output: CommandOutput,
): Promise<string> {
  const { at = from, name } = backupSubject(subject)
  const backup = chosenBackup(name, await fleetBackups(at, api))
  const claim = claimName(wanted.claim ?? backup.claim)
  const [fleet, found] = [await fleetVolumes(api), await claimWanted(claim, wanted, api)]
  const folder = backupTarget(backup.at)
  const home = 'node' in folder ? folder.node : undefined
  const node = to ?? home
  if (node === undefined) throw new Error('Give the node that gets the data with --to NODE: the backup is on a NAS')
  const made = restoration(backup, found, { node, id: randomBytes(4).toString('hex'), fleet })
  await create(made, wanted, api)
  if ('problem' in made) throw new Error(made.problem)
  output.stdout(doneText(found, wanted, `Its data comes from ${backup.name} of ${backup.time}.`))
  return watchRestore(made.volume.metadata.name ?? '', claim, watchFor(api, output))
}

async function fleetBackups(at: string | undefined, { client, signal }: Api): Promise<FleetBackups> {
  const answer = await client.get(`/backups${at === undefined ? '' : `?at=${encodeURIComponent(at)}`}`, signal)
  expectSuccess('Cannot read the backups', answer)
  const decoded = decode(FleetBackupsSchema, answer.body)
  if (decoded.ok) return decoded.value
  throw new Error('Cannot read the backups: the controller has another version')
}

function doneText({ namespace, name, present }: ForClaim, { isVolumeOnly }: Wanted, where: string): string {
  const claim = `claim ${namespace}/${name}`
  if (present !== undefined) return `The ${claim} gets its volume. ${where}\n`
  return isVolumeOnly ? `The volume is reserved for the ${claim}. ${where}\n` : `The ${claim} is created. ${where}\n`
}

async function claimWanted(claim: string, { size, isVolumeOnly }: Wanted, api: Api): Promise<ForClaim> {
  const [namespace = '', name = ''] = claimName(claim).split('/')
  const present = await read(claimPath(namespace, name), PersistentVolumeClaimSchema, api)
  if (present === undefined && !isVolumeOnly) {
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}`
    const answer = await api.client.get(path, api.signal)
    if (answer.status === 404)
      throw new Error(`The namespace ${namespace} is gone: create it first (kubectl create namespace ${namespace})`)
    expectSuccess(`Cannot read the namespace ${namespace}`, answer)
  }
  const classes = await storageClasses(api)
  return { namespace, name, present, size, classOf: (one) => classes.find(({ metadata }) => metadata.name === one) }
}

/** The volume first: a claim alone would get an empty one. What an earlier call created is left as it is. */
async function create(made: RestoredVolume, { isVolumeOnly }: Wanted, api: Api): Promise<void> {
  if ('problem' in made) throw new Error(made.problem)
  const { volume, claim } = made
  const { name = '' } = volume.metadata
  const path = '/api/v1/persistentvolumes'
  const created = await api.client.post(path, volume, api.signal)
  if (created.status === 409) await expectSame(`${path}/${name}`, volume, api)
  else expectSuccess(`Cannot create the volume ${name}`, created)
  if (claim === undefined || isVolumeOnly) return
  const { namespace = '', name: claimed = '' } = claim.metadata
  const answer = await api.client.post(claimPath(namespace), claim, api.signal)
  // Made meanwhile, by a controller: the volume is reserved for it.
  if (answer.status !== 409)
    expectSuccess(`The volume ${name} is created, and the claim ${namespace}/${claimed} is not`, answer)
}

async function expectSame(
  path: string,
  wanted: NonNullable<Extract<RestoredVolume, { volume: unknown }>['volume']>,
  api: Api,
) {
  const present = await read(path, PersistentVolumeSchema, api)
  const { name = '' } = wanted.metadata
  if (present?.metadata.deletionTimestamp !== undefined) {
    throw new Error(`The volume ${name} is still being deleted: try again when it is gone (kubectl get pv ${name})`)
  }
  const [is, expected] = [present?.spec, wanted.spec]
  const isSame = is?.local?.path === expected?.local?.path && is?.claimRef?.name === expected?.claimRef?.name
  if (!isSame || is?.claimRef?.namespace !== expected?.claimRef?.namespace) {
    throw new Error(
      `There is another volume ${name}, for the claim ${is?.claimRef?.namespace}/${is?.claimRef?.name}: delete it first, or give that claim`,
    )
  }
}

function claimPath(namespace: string, name = ''): string {
  const all = `/api/v1/namespaces/${encodeURIComponent(namespace)}/persistentvolumeclaims`
  return name === '' ? all : `${all}/${encodeURIComponent(name)}`
}

async function fleetVolumes({ client, signal }: Api): Promise<FleetVolumes> {
  const answer = await client.get('/fleet/volumes', signal)
  expectSuccess('Cannot read the volumes of the fleet', answer)
  const decoded = decode(FleetVolumesSchema, answer.body)
  if (decoded.ok) return decoded.value
  throw new Error('Cannot read the volumes of the fleet: the controller has another version')
}

async function nodeOf(name: string, api: Api): Promise<Node> {
  const node = await read(`/api/v1/nodes/${encodeURIComponent(name)}`, NodeSchema, api)
  if (node === undefined) throw new Error(`There is no node ${JSON.stringify(name)}: 'kubectl get nodes' lists them`)
  return node
}

async function storageClasses({ client, signal }: Api): Promise<readonly StorageClass[]> {
  const answer = await client.get('/apis/storage.k8s.io/v1/storageclasses', signal)
  expectSuccess('Cannot read the storage classes', answer)
  const { items = [] } = answer.body as { readonly items?: readonly object[] }
  const kind = { apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass' }
  return items.flatMap((item) => {
    const decoded = decode(StorageClassSchema, { ...kind, ...item })
    return decoded.ok ? [decoded.value] : []
  })
}

/** undefined: it does not exist. */
async function read<const S extends TSchema>(
  path: string,
  schema: S,
  { client, signal }: Api,
): Promise<Described<S> | undefined> {
  const answer = await client.get(path, signal)
  if (answer.status === 404) return undefined
  expectSuccess(`Cannot read ${path}`, answer)
  const decoded = decode(schema, answer.body)
  if (decoded.ok) return decoded.value
  throw new Error(`Cannot read ${path}: invalid answer`)
}

function claimProblem(option: string, claim: string | undefined): string | undefined {
  if (claim === undefined) return undefined
  const [namespace = '', name = '', ...more] = claimName(claim).split('/')
  const isName = dnsLabelProblem(namespace) === undefined && dnsSubdomainProblem(name) === undefined
  return isName && more.length === 0 ? undefined : invalidValue(option, claim, 'use NAMESPACE/NAME, like default/db')
}

function sizeProblem(size: string | undefined, option = '--size'): string | undefined {
  if (size === undefined || (tryParseQuantity(size) !== undefined && !/^-|^\+?0+$/.test(size))) return undefined
  return invalidValue(option, size, 'use a size like 5Gi')
}
