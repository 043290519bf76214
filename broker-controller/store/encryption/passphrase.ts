/** A key made of a passphrase, and files that it encrypts. */
import { randomBytes, scrypt } from 'node:crypto'
import type { AuthorityFiles } from '../store.ts'
import { openBytes, sealBytes } from './secret-keys.ts'

/** As of scrypt (RFC 7914): N, r and p. */
export type PassphraseParameters = {
  readonly salt: Uint8Array
  readonly cost: number
  readonly blockSize: number
  readonly parallelization: number
}

/** 32 MiB of memory, for machines that have 512; as slow to guess as with N = 2^17 and p = 1 (OWASP, Password Storage Cheat Sheet). */
const usual = { cost: 2 ** 15, blockSize: 8, parallelization: 3 }
/** What a file may ask for: four times the usual memory. */
const mostMemory = 128 * 1024 * 1024
const mostParallelization = 16

export const shortestPassphrase = 12

/** Encrypts what is private: everything but certificates. */
export async function sealFiles(
  files: AuthorityFiles,
  passphrase: string,
): Promise<{ readonly files: AuthorityFiles; readonly parameters: PassphraseParameters }> {
  const parameters = { salt: randomBytes(16), ...usual }
  const key = await keyOf(passphrase, parameters)
  const sealed = [...files].map(([name, body]) => [name, isPublic(name) ? body : sealBytes(key, name, body)] as const)
  return { files: new Map(sealed), parameters }
}

/** The files given to `sealFiles`. Rejects when the passphrase is another. */
export async function openFiles(
  files: AuthorityFiles,
  passphrase: string,
  parameters: PassphraseParameters,
): Promise<AuthorityFiles> {
  const key = await keyOf(passphrase, parameters)
  try {
    return new Map([...files].map(([name, body]) => [name, isPublic(name) ? body : openBytes(key, name, body)]))
  } catch (cause) {
    throw new Error('The passphrase is not that of the backup', { cause })
  }
}

function isPublic(name: string): boolean {
  return name.endsWith('.crt')
}

function keyOf(passphrase: string, { salt, cost, blockSize, parallelization }: PassphraseParameters): Promise<Buffer> {
  if (128 * cost * blockSize > mostMemory || parallelization > mostParallelization) {
    return Promise.reject(new Error('The backup asks for more work than any that this program makes'))
  }
  const options = { N: cost, r: blockSize, p: parallelization, maxmem: 2 * mostMemory }
  return new Promise((resolve, reject) => {
    scrypt(passphrase.normalize('NFC'), salt, 32, options, (error, key) => (error ? reject(error) : resolve(key)))
  })
}
