/** The program behind `bramble-controller simulate`: a file in, what its story does to the fleet out. */
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { SimulateFile } from '../../broker-controller/commands/simulate-command.ts'
import { backedUpObjects, readBackup } from '../../broker-controller/store/sqlite/sqlite-backup.ts'
import { storyOf } from '../../daemon/log.ts'
import { ConfigurationError } from '../../daemon/process/configuration-file.ts'
import { type BackupFleet, fleetOfBackup } from './backup-fleet.ts'
import { type ForecastProgress, RefusedObjectsError, runForecast } from './forecast.ts'
import { forecastJSON, forecastText } from './forecast-text.ts'
import { madeObject, referencesIn } from './made-references.ts'
import { type PlacedObject, readManifests } from './manifests.ts'
import { isBelow } from './outlook.ts'
import { decodeSimulationFile, simulationPlan } from './simulation-file.ts'

const progressEveryMs = 5_000

export const simulateFile: SimulateFile = async ({ path, seed, output }, { stdout, stderr, signal, nowMs }) => {
  try {
    const source = await readFile(path).catch((cause: unknown) => {
      throw new ConfigurationError(`Cannot read ${path}`, [], { cause })
    })
    const file = decodeSimulationFile(source, path)
    const backup = file.backup === undefined ? undefined : await backupAt(resolve(dirname(path), file.backup))
    const plan = simulationPlan(file, backup?.fleet.machines ?? [], path)
    const { objects, made } = withReferences(await readManifests(file, path), backup?.fleet)
    const forecast = await runForecast({
      ...{ seed, plan, objects, signal, progress: progressPrinter(stderr, nowMs) },
      backup: backup && { contents: backup.fleet.contents, madeMs: backup.madeMs },
    })
    const { leftOut } = forecast
    const notes = [
      ...(backup?.fleet.notes ?? []),
      ...(made.length > 0 ? [`Not in the manifests, and made with the keys that pods name: ${made.join(', ')}`] : []),
      ...(leftOut.length > 0 ? [`Left out of the manifests: ${leftOut.join(', ')}`] : []),
    ]
    stdout((output === 'json' ? forecastJSON : forecastText)(forecast, notes))
    return forecast.workloads.some(isBelow) ? 'below' : 'fine'
  } catch (error) {
    stderr(signal.aborted ? 'Stopped\n' : `${storyOf(error)}\n`)
    const isOfFile = error instanceof ConfigurationError || error instanceof RefusedObjectsError
    return isOfFile ? 'refused' : 'failed'
  }
}

async function backupAt(path: string): Promise<{ readonly fleet: BackupFleet; readonly madeMs: number }> {
  try {
    const { made } = readBackup(path)
    return { fleet: fleetOfBackup(backedUpObjects(path), made), madeMs: Date.parse(made) }
  } catch (cause) {
    throw new ConfigurationError(
      `Cannot use the backup ${path}: give a file that 'bramble-controller backup' has made`,
      [],
      { cause },
    )
  }
}

/** With the Secrets and ConfigMaps that pods of the manifests name, and that are neither there nor in the backup. */
function withReferences(placed: readonly PlacedObject[], fleet: BackupFleet | undefined) {
  const nameOf = (kind: string, namespace: string, name: string) => `${kind} ${namespace}/${name}`
  const present = new Set([
    ...placed.map(({ object: { kind, metadata } }) =>
      nameOf(kind, metadata.namespace ?? 'default', metadata.name ?? ''),
    ),
    ...(fleet?.contents.rows ?? []).map(({ resource, namespace, name }) =>
      nameOf(resource === 'secrets' ? 'Secret' : resource === 'configmaps' ? 'ConfigMap' : resource, namespace, name),
    ),
  ])
  // Each namespace gets it from the controller.
  const isOfController = (name: string) => name === 'kube-root-ca.crt'
  const missing = referencesIn(placed.map(({ object }) => object)).filter(
    ({ kind, namespace, name }) => !present.has(nameOf(kind, namespace, name)) && !isOfController(name),
  )
  const made = missing.map((one) => ({ place: nameOf(one.kind, one.namespace, one.name), object: madeObject(one) }))
  return { objects: [...made, ...placed], made: made.map(({ place }) => place) }
}

/** A line for some seconds of work at most. */
function progressPrinter(stderr: (text: string) => void, nowMs: () => number): (progress: ForecastProgress) => void {
  let lastMs = nowMs()
  return ({ part, minute, of }) => {
    if (nowMs() - lastMs < progressEveryMs) return
    lastMs = nowMs()
    stderr(`${part}: minute ${minute} of ${of}\n`)
  }
}
