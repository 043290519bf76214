/**
 * The Node.js that runs this process, for a child process: an upgrade of its package removes the file at `process.execPath`
 * some time before it restarts the program.
 */
export const ownExecutable = `/proc/${process.pid}/exe`
