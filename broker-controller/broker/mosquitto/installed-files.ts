/** The files of a Mosquitto in the folder where it reads them: copies of those that a controller keeps in its data directory. */
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../../daemon/durable-file.ts'
import { mosquittoFiles } from './server-configuration.ts'

/** Where a controller keeps the files. */
export function mqttServerFolder(dataDir: string): string {
  return join(dataDir, 'mosquitto')
}

/**
 * Copies what differs, each file whole and readable by the folder's owner only, the configuration last. Resolves with the names of the
 * files that were written. Rejects with the reason and a remedy.
 */
export async function installServerFiles(source: string, target: string): Promise<readonly string[]> {
  const folder = await stat(target).catch(() => undefined)
  if (folder?.isDirectory() !== true) {
    throw new Error(
      `There is no folder ${target}: create it for the server (install -d -o mosquitto -m 0700 ${target})`,
    )
  }
  if ((folder.mode & 0o022) !== 0) throw new Error(`Others can write into ${target}: chmod go-w ${target}`)
  const present = new Set(await readdir(source).catch((): string[] => []))
  const missing = Object.values(mosquittoFiles).filter((name) => !present.has(name))
  if (missing.length > 0) {
    throw new Error(
      `There is no ${join(source, missing[0] ?? '')}: set mqttBroker in the configuration of the controller, and start it`,
    )
  }
  const written: string[] = []
  for (const name of Object.values(mosquittoFiles).sort(configurationLast)) {
    const path = join(target, name)
    const content = (await readFile(join(source, name), 'utf8')).replaceAll(`${source}/`, `${target}/`)
    if ((await readFile(path, 'utf8').catch(() => undefined)) === content) continue
    // Only root may give files away; for others they are their own.
    await replaceFile(path, content, 0o600, process.getuid?.() === 0 ? folder : undefined)
    written.push(name)
  }
  return written
}

/** Another text after a change of a file that the controller keeps, without reading it. */
export async function sourceVersion(source: string): Promise<string> {
  const stats = await Promise.all(
    Object.values(mosquittoFiles).map((name) => stat(join(source, name)).catch(() => undefined)),
  )
  return stats.map((one) => (one === undefined ? '-' : `${one.ino} ${one.mtimeMs} ${one.size}`)).join()
}

function configurationLast(a: string, b: string): number {
  return Number(a === mosquittoFiles.configuration) - Number(b === mosquittoFiles.configuration)
}
