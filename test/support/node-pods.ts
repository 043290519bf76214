/** Containers that run scripts of `test/clients/` with the Node.js of this machine: no image of it can be pulled here. */
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { image } from './pods.ts'

const repository = fileURLToPath(new URL('../../../', import.meta.url))
const clients = `${repository}test/clients`
/** Node.js with its libraries, and the packages of this repository. */
const folders = [
  ...new Set(['/usr', '/lib', '/lib64', dirname(process.execPath), `${repository}node_modules`, clients]),
]

/** Parts of a pod; `args` are words of the shell. */
export function nodeOfThisMachine(script: string, args = '') {
  return {
    image,
    command: ['sh', '-c', `exec ${process.execPath} ${clients}/${script} ${args}`],
    volumes: folders.map((path, index) => ({ name: `v${index}`, hostPath: { path } })),
    volumeMounts: folders.map((mountPath, index) => ({ name: `v${index}`, mountPath, readOnly: true })),
  }
}
