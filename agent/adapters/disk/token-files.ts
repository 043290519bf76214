/** Tokens of pods in files of their own: only the agent reads them. */
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../../daemon/durable-file.ts'
import { codeOf } from '../../../daemon/errors.ts'

/** Writes the token into each of these folders, which are created with mode 0700. */
export async function writeToken(folders: readonly string[], name: string, token: string): Promise<void> {
  for (const folder of folders) {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await replaceFile(join(folder, name), token, 0o600)
  }
}

/** The token in the first of these folders that has one. */
export async function readToken(folders: readonly string[], name: string): Promise<string | undefined> {
  for (const folder of folders) {
    const token = await readFile(join(folder, name), 'utf8').catch((error) => {
      if (codeOf(error) === 'ENOENT') return ''
      throw error
    })
    if (token !== '') return token
  }
  return undefined
}
