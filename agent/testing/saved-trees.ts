/** Paths of the saved trees, for tests. They stay with the sources; compiled tests run from `dist/`. */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export function savedTree(name: string): string {
  let folder = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(folder, 'package-lock.json'))) folder = dirname(folder)
  return join(folder, 'agent/testing/boards', name)
}
